"""Text processing that every layer shares: tokens, sentences, languages, dates, extractive summaries."""
