"""Types of names: by their own words, and by the words around them."""
