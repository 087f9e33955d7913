"""Names in German, where every noun has a capital, so that a capital is not evidence of a name.

A name of `finder.py` is kept if it has other evidence: a known place or given name, an acronym, two capitalized words
in a row, a form of address, a verb of speaking, or several occurrences that are all without an article.

Keep out: other languages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, HONORIFICS, ORGANIZATIONS, words
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.text.late_patterns import late_regex

_MIN_BARE_COUNT = 3
_BEFORE = late_regex(r"(\p{L}+)\s+$")
_AFTER = late_regex(r"\s+(\p{Ll}+)")
_NOUN_ENDINGS = late_regex(r"(?:UNG|HEIT|KEIT|SCHAFT|TION|TÄT|ISMUS|CHEN|LEIN|NIS|TUM|UNGEN|TIONEN|EREI|ENZ|ANZ)$")
_NOT_BEFORE_NAMES = words("""
der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner mein meine dein seine sein
seinen seinem seiner ihr ihre ihren ihrem ihrer unser unsere dieser diese dieses diesen diesem jeder jede jedes jeden
welcher welche im am zum zur vom beim ins ans viele viel mehr alle wenige einige zwei drei vier fünf
""")
_SPEAKING = words("sagte sagt meinte fragte antwortete rief erklärte betonte lachte schrieb erzählte kündigte warnte")
_AMOUNTS = words("""
millionen milliarden prozent ende anfang mitte liter kilo meter kilometer stück paar dutzend uhr euro jahre tonnen
hektar grad montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april mai juni juli august
september oktober november dezember herr frau herrn
""")


def keep_german_names(names: Iterable[Name], text: str) -> list[Name]:
    """Keep the names among the capitalized words of a German document; "Merkels" becomes "Merkel" if that is a name."""
    by_form: defaultdict[str, list[Name]] = defaultdict(list)
    for name in names:
        by_form[name.form].append(name)
    kept = {form: form for form, places in by_form.items() if _is_name(form, places, text)}
    parts = Counter(word for form in kept if " " in form for word in form.split())
    for form in by_form:
        base = form.removesuffix("s")
        if form not in kept and form in parts:
            kept[form] = form
        elif form not in kept and base != form and (base in kept or base in parts or _is_known(base)):
            kept[form] = base
    found = [replace(name, form=kept[form]) for form, places in by_form.items() if form in kept for name in places]
    return sorted((_cut_possessed(name, parts) for name in found), key=lambda name: (name.start, name.end))


def _cut_possessed(name: Name, parts: Counter[str]) -> Name:
    """Cut the possessed noun: "Merkels Regierung" becomes "Merkel"."""
    owner, _, possessed = name.form.partition(" ")
    base = owner.removesuffix("s")
    if not possessed or base == owner or not (parts[base] or _is_known(base)):
        return name
    return replace(name, form=base, end=name.start + len(owner))


def _is_known(form: str) -> bool:
    title = title_of(form)
    return title in load_places() or title in GIVEN_NAMES or title in ORGANIZATIONS


def _is_name(form: str, places: list[Name], text: str) -> bool:
    parts = form.split()
    keys = [title_of(part).rstrip(".") for part in parts]
    if keys[0] in _AMOUNTS and keys[0] not in HONORIFICS:
        return False
    if len(parts) > 1:
        return keys[-1] not in _AMOUNTS and not all(_NOUN_ENDINGS.search(key) for key in keys)
    if _is_known(form) or (form.isupper() and 2 <= len(form) <= 6):
        return True
    if _NOUN_ENDINGS.search(keys[0]):
        return False
    before = [_BEFORE.search(text[max(0, place.start - 20) : place.start]) for place in places]
    if any(match and match.group(1).upper() in _NOT_BEFORE_NAMES for match in before):
        return False
    after = [_AFTER.match(text, place.end) for place in places]
    if any(match and match.group(1).upper() in _SPEAKING for match in (*after, *before)):
        return True
    return len(places) >= _MIN_BARE_COUNT
