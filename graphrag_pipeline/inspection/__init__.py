"""Looking at a root and changing nothing: what a run would cost, what would merge, what two snapshots differ in,
what a changed prompt would write, where a citation comes from.

Each module gives data and its lines of text for a terminal. Keep out: what is stale, which decides what runs.
"""
