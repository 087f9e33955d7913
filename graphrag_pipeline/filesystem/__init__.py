"""Files and folders of a root: atomic writes, folders with a list of their files, and messages of fsspec errors."""
