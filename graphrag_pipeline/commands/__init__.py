"""Commands, one module per subject; `cli.py` mounts them.

A command finds the root, calls one function of the package and prints the result. Results go to standard output, other
messages to standard error. Keep out: anything that a user of the Python API needs.
"""
