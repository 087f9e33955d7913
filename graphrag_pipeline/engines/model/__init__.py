"""The engine of chat and embedding models: prompts, replies, what happens if a call fails, and prompt tuning."""
