"""Counts in words for people: `1 entity`, `1,200 entities`."""


def counted(n: int, nouns: str) -> str:
    """Return a number with its noun.

    Args:
        nouns: plural in `s` or `ies`, such as `text units` or `entities`.
    """
    if n != 1:
        return f"{n:,} {nouns}"
    return f"1 {nouns[:-3]}y" if nouns.endswith("ies") else f"1 {nouns.removesuffix('s')}"
