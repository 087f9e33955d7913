"""The engine without a model: names by spaCy, sentences and passages of the texts, static embeddings."""
