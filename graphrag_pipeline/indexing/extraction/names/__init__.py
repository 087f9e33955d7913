"""Names of one document by rules: capitalization, gazetteer, aliases, titles, dates, key phrases, and languages."""
