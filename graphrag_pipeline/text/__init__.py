"""Text processing that every layer shares: tokens, sentences, languages, extractive summaries."""
