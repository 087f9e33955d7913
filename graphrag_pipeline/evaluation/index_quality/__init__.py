"""Quality figures of an index: coverage, duplicates, citations, placeholders, agreement between engines."""
