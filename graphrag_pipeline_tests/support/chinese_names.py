"""Names in one Chinese text, as the rules find them; jieba is needed."""

from graphrag_pipeline.indexing.extraction.names.chinese.cjk import find_chinese_names


def find_types(text: str) -> dict[str, str]:
    """Return the type of each name of one document."""
    return find_chinese_names(text, [0])[1]


def find_people(text: str) -> set[str]:
    """Return the names of the persons of one document."""
    return {name for name, kind in find_types(text).items() if kind == "PERSON"}
