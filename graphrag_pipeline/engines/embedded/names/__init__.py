"""Names of one document: found by spaCy and by patterns, with their types and canonical forms."""
