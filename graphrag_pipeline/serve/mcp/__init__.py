"""The index as read-only tools for agents, by the Model Context Protocol: over HTTP at `/mcp`, and over stdio."""
