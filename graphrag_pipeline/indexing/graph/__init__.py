"""One graph from the mentions of all documents: merging, entity resolution, summarized descriptions."""
