"""Batches of questions: question files in, answer files out."""
