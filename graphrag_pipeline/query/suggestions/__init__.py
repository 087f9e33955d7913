"""Questions that a user might ask next: from the conversation so far and what the index holds about it."""
