"""Random faults against whole roots: run by hand, bounded by time and seed."""
