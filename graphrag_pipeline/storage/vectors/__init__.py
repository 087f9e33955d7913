"""Vector tables: immutable LanceDB folders, and the registry of vector stores."""
