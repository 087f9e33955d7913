"""Many questions in one run: question files in, answer files out."""
