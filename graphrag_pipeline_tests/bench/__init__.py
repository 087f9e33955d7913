"""Benches: whole commands on made-up corpora, measured as a user would see them, against the limits we promise.

`make bench` (or `python -m graphrag_pipeline_tests.bench [NAME ...]`) prints one row of a markdown table per figure and
exits with 1 where a limit does not hold. Figures of time and memory are of a whole process, imports included: seconds
by the clock, seconds of processor (user and system) and peak resident memory. The clock depends on what else runs, so
the load is in the heading. Limits hold on two cores.

Add a bench as a function in `benches.py`, corpora in `articles.py`; keep out timing of single functions, assertions
about results (they are tests), and anything that needs a network or a key.
"""
