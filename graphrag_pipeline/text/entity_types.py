"""Entity types that the package itself knows; documents and models may have any others.

The first four are those of Microsoft GraphRAG's default prompt.
"""

from __future__ import annotations

PERSON, ORGANIZATION, GEO, EVENT = "PERSON", "ORGANIZATION", "GEO", "EVENT"
IDENTIFIER = "IDENTIFIER"
"""Of systems, tables, tickets and files: `dim_customer`, `TICKET-118`."""
CONCEPT = "CONCEPT"
"""Of terms, which are not names."""
UNKNOWN = "UNKNOWN"
"""Of what has no known type; agrees with all types."""
