"""Answers and their citations, written by the extractive engine or by a chat model."""
