"""Community reports: contexts within a token budget, and reports by rules or by a chat model."""
