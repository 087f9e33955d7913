"""Question understanding: entities, time phrases, metadata filters and conversation history."""
