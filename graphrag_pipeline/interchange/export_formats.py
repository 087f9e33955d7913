"""Registry of export formats, without the imports of their writers, so that the command line can list them.

Add a format here, with the module and function that write it.
"""

EXPORT_FORMATS: dict[str, tuple[str, str]] = {
    "graphrag": ("graphrag_export", "write_graphrag"),
    "graphml": ("graphml_file", "write_graphml"),
    "csv": ("graph_csv", "write_graph_csv"),
}
"""Name of the format -> (module of this folder, function)."""
