"""Name finding by rules: capitalization, gazetteer, key phrases, and rules per language."""
