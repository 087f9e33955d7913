"""The search methods as declared steps, and how a question goes through them."""
