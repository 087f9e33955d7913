"""Question understanding: entities, kind of answer, time phrases, relevance and conversation history."""
