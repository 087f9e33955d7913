"""Text processing that all rooms share: tokens, sentences, languages, extractive ranking. Imports no other room."""
