"""Ports to models, the store of replies, budgets, prompts, and the bundled embeddings that need no endpoint."""
