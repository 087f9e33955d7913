"""Forms of one name in one document: aliases, and acronyms with their long forms; names that only headings have."""
