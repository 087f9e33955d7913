"""Vector tables: immutable LanceDB folders, the contract of a vector store, and the registry of stores."""
