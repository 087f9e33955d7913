"""The index in a store that several machines share: a folder behind an fsspec URL (`s3://bucket/prefix`, `gs://`, ...).

A root with `storage.url` is a working copy: everything fast stays local. The store holds content-named objects, under
the paths that their files have in a root (a folder is one tar archive), and numbered states: heads, snapshots, pointer
and pin together. Creating the next number publishes, and only one of two can; before that
nothing names what was uploaded, so a killed upload changes nothing.

    objects.py         objects by name, behind any URL
    faults.py          what went wrong with a store
    folders.py         an immutable folder as one object
    transfer.py        moving files of a root from and to the store
    state.py           what the store says is current; three-way comparison with a working copy
    numbered_states.py the states in the store: the last one, and publishing the next
    working_copy.py    what a root has, and taking what the store says
    lease.py           one writer at a time
    writing.py         the one who writes: putting there what is here
    notes.py           what a root remembers of its store
    shared_store.py    following, pulling, writing: what the rest of the house calls
"""
