"""Counts in words for people: `1 entity`, `1,200 entities`."""


def counted(n: int, nouns: str) -> str:
    """Return a number with its noun.

    Args:
        nouns: plural in `s` or `ies`, such as `text units` or `entities`.
    """
    if n != 1:
        return f"{n:,} {nouns}"
    return f"1 {nouns[:-3]}y" if nouns.endswith("ies") else f"1 {nouns.removesuffix('s')}"


def spread_rows(n_rows: int, n_wanted: int) -> list[int]:
    """Return at most `n_wanted` row numbers, evenly spread over `n_rows` rows, ascending."""
    if n_wanted >= n_rows:
        return list(range(n_rows))
    return [(2 * i + 1) * n_rows // (2 * n_wanted) for i in range(n_wanted)]
