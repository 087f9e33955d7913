"""Terms of a document: words and phrases in lower case, and the signs of a term among the names."""
