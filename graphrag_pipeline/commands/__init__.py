"""The commands, a module per subject; `cli.py` mounts them.

Each finds the root, calls one function of the package and prints what it returns: results to standard output,
everything else to standard error. Keep out: anything a library user would miss.
"""
