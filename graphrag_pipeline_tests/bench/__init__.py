"""Benches: whole commands on generated corpora, measured as a user sees them, against documented limits.

`make bench` (or `python -m graphrag_pipeline_tests.bench [NAME ...]`) prints one row of a markdown table per figure and
exits with 1 where a limit does not hold. Figures of time and memory are those of a whole process with its imports:
seconds of wall time, seconds of processor (user and system) and peak resident memory. Wall time depends on the load of
the machine, which is in the heading. Limits hold on two cores.

Add a bench as a function in `benches.py`, corpora in `articles.py`; keep out timing of single functions, assertions
about results (they are tests), and anything that needs a network or a key.
"""
