"""Answers by a chat model."""
