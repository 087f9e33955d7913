"""Read-only views of a root: cost estimates, merges, snapshot differences, trials of prompts, traces of citations.

Each module returns data and renders it as lines for a terminal. Keep out: staleness, which decides what runs.
"""
