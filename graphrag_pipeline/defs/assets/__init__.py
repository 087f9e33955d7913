"""The assets of the index: their bodies, definitions, checks, sources and what the UI shows of them."""
