"""Names that need the number or letters behind them: "EN 14511", "HTM 03-01", "HLA-B*5801".

The acronym of a standard names a whole series, or nothing; with its number it names one text. Acronyms of the bodies
that publish standards are listed. Any other acronym counts if the document always writes it before a number that is no
year and no quantity.

Keep out: acts of law (`acts.py`), numbers of versions (`finder.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.text.late_patterns import late_regex

_SERIES = words("""
en iso iec din vdi bs astm ansi ieee rfc nfpa ul asme sae etsi jis une nen htm hsg pas ifrs ias
""")
_UNITS = r"m|mm|cm|km|kg|g|mg|s|ms|min|h|l|ml|px|pt|dB|Hz|kHz|MHz|GHz|V|A|W|kW|MB|GB|TB|k|bn|per\scent|million|billion"
_NUMBER = late_regex(
    r"[ \u00a0](?P<number>(?:[A-Z]-?)?+\d++(?:[./:\u2010\u2011-]\d++)*+[A-Z]?+)"
    rf"(?![\p{{L}}\p{{Nd}}%°]|[ \u00a0](?:{_UNITS})\b)"
)
_STAR = late_regex(r"\*\d+(?::\d+)*")
_YEAR = late_regex(r"(?:19|20)\d\d")
_MIN_DIGITS = 2


def join_numbers(names: Iterable[Name], text: str) -> tuple[list[Name], set[str]]:
    """Return the names, with acronyms extended by the number that makes them a name, and the forms of these."""
    names = list(names)
    tails: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        if _is_acronym(name.form):
            tails[name.form].append(_read_tail(name, text))
    numbered = {form for form, found in tails.items() if all(found) or _is_series(form)}
    joined, forms = [], set[str]()
    for name in names:
        tail = _read_tail(name, text) if name.form in numbered else ""
        if tail:
            name = replace(name, form=name.form + tail, end=name.end + len(tail))
            forms.add(name.form)
        elif name.form in numbered:
            continue  # "an EN standard"
        joined.append(name)
    return joined, forms


def _is_acronym(form: str) -> bool:
    bare = form.replace(" ", "").replace("-", "")
    return bare.isupper() and bare.isalpha() and len(bare) <= 8


def _is_series(form: str) -> bool:
    return all(word in _SERIES for word in form.split())


def _read_tail(name: Name, text: str) -> str:
    """Return the number behind an acronym, "" if it is a year, a quantity, or none."""
    star = _STAR.match(text, name.end)
    if star:
        return star.group()
    match = _NUMBER.match(text, name.end)
    if match is None or sum(map(str.isdigit, match["number"])) < _MIN_DIGITS:
        return ""
    is_year = _YEAR.fullmatch(match["number"]) and not _is_series(name.form)
    return "" if is_year else f" {match['number']}"
