"""Community detection: hierarchical Leiden clustering, kept stable between snapshots."""
