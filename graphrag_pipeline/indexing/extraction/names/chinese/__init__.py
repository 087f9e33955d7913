"""Rules for Chinese texts that need no dictionary of names."""
