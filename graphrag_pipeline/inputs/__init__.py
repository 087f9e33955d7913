"""Input documents: files, their formats, and the source records read from them."""
