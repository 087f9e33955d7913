"""Text unit selection strategies for local search."""
