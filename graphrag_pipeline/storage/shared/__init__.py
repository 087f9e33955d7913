"""The index in a store that several machines share: a folder behind an fsspec URL (`s3://bucket/prefix`, `gs://`, ...).

A root with `storage.url` is a working copy: searches and stages use local files only. The store holds content-named
objects, under the paths of their files in a root (a folder is one tar archive). It also holds numbered states: heads,
snapshots, pointer and pin in one object. A writer publishes by creating the state of the next number, and only one of
two writers can create it. Before that nothing names the uploaded objects, so a killed upload changes nothing.

    objects.py         objects by name, behind any URL, and their errors as messages
    transfer.py        transfer of files between a root and the store
    state.py           the numbered states of a store, notes, and the comparison with a working copy
    working_copy.py    the content of a root, and applying the store's state to it
    lease.py           one writer at a time
    heartbeats.py      runs on other machines: which still work
    bucket_session.py  buckets that several machines build at the same time
    shared_store.py    following, pulling, writing: the interface for other packages
"""
