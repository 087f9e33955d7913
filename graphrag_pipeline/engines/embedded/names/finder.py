"""Names of one document: which words are names, of which type, and everywhere they occur.

spaCy, the patterns of identifiers and acronyms, and the title of the document propose forms. A form that the document
also writes as an ordinary word is dropped. Then every occurrence of each form counts, the longest form first: a name
that spaCy saw once is a name everywhere in the document. The type of a form is the one that most of its occurrences
got.

Keep out: forms of one name (`forms.py`), terms in small letters (`terms.py`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import regex

from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText
from graphrag_pipeline.text.languages import is_unspaced
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import CONCEPT, GIVEN_NAMES, HONORIFICS, PERSON, UNKNOWN, key_of
from graphrag_pipeline.text.word_ranks import is_common_word

MAX_WORDS = 10
_LONGEST = 500
_LEAST_ALIKE = 0.5
"""Share of the occurrences of a word with a capital that must be names, for one that only starts sentences."""
_LONGEST_ACRONYM = 6
"""Letters of a word in capitals that may be an acronym; a longer one is a shouted word."""

_WORD = late_regex(r"[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}_&]|[.'’/-](?=[\p{L}\p{N}]))*")
_ARTICLE = late_regex(r"(?:the|a|an|this|that|these|those|my|our|your|his|her|its|their)\s+", regex.IGNORECASE)
_WORD_BEFORE = late_regex(r"(?<![\p{L}.])(\p{Lu}\p{L}+\.?) $")
_POSSESSIVE = late_regex(r"['’]s?$")
_SMALL_LAST = late_regex(r"(?<=\S)\s+\p{Ll}[\p{Ll}'’-]*$")
_BREAK = late_regex(r"[|*#{}()\[\]<>=¤`\"“”«»;:]|\s[-–—/]\s|,\s(?!(?:Inc|Ltd|LLC|Corp|Jr|Sr|D\.C)\b)")
_NUMBERED = late_regex(r"\d+(?:\.\d+)*\.?\s+(?=\p{L})")
_AMOUNT = late_regex(r"\d[ \u00a0]?$")
_LABEL = late_regex(r"[*_]*:(?=[*_ \n]|$)")
_DATELINE = late_regex(r"(?m)^[\p{Lu}][\p{Lu} .,'’-]+(?:,[\p{L} .]+)?(?:\([^()\n]{1,30}\))?\s?[-–—]{1,2}\s")
_LOWER = late_regex(r"(?<![\p{L}\p{N}_'’-])\p{Ll}[\p{L}\p{M}]+")


def clean_form(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the name in a part of a text: without article, possessive, quotes and marks.

    A part of more than `_LONGEST` characters is no name; an empty one is returned for it.
    """
    if end - start > _LONGEST:
        return start, start
    if cut := _BREAK.search(text, start, end):
        first, last = (start, cut.start()), (cut.end(), end)
        start, end = first if cut.start() - start >= end - cut.end() else last
        return clean_form(text, start, end)
    if number := _NUMBERED.match(text, start, end):
        start = number.end()
    if article := _ARTICLE.match(text, start, end):
        start = article.end()
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not (text[end - 1].isalnum() or (text[end - 1] == "." and _is_abbreviated(text[start:end]))):
        end -= 1
    if possessive := _POSSESSIVE.search(text[start:end]):
        end = start + possessive.start()
    return start, end


def _is_abbreviated(form: str) -> bool:
    """Whether the full stop at the end of a form is part of it: "Apple Inc.", "Samuel L. Jackson Jr.", "U.S."."""
    last = form.split()[-1]
    return last.count(".") > 1 or last.lower() in ("inc.", "ltd.", "corp.", "co.", "jr.", "sr.", "bros.")


class Forms:
    """The written forms that may be names of a document, with what was said of their types.

    Args:
        folded: the document.
    """

    def __init__(self, folded: FoldedText) -> None:
        self._folded = folded
        self._votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._sure: dict[str, str] = {}
        self._lower = Counter(_LOWER.findall(folded.text))
        self._words = find_words(folded.text)
        self._titled = {word.casefold() for _, word in self._words if not word.isupper()}
        self._skipped = [match.span() for match in _DATELINE.finditer(folded.text)]

    def add_entity(self, start: int, end: int, kind: str) -> None:
        """Add what spaCy takes for a name."""
        text = self._folded.text
        start, end = clean_form(text, start, end)
        while small := _SMALL_LAST.search(text, start, end):  # a name ends with a capital or a digit
            end = small.start()
        form = text[start:end]
        if self._may_be_name(form, start):
            self._votes[form][kind] += 1

    def add_sure(self, form: str, kind: str = "") -> None:
        """Add a form that is a name whatever the text around it; `kind` is its type, "" if others decide it."""
        self._sure.setdefault(form, kind)

    def types(self) -> dict[str, str]:
        """Return form -> type of the forms that are names."""
        counts = self._count_capitals()
        found: dict[str, str] = {}
        for form, votes in self._votes.items():
            if form not in self._sure and " " not in form and not self._is_named(form, votes.total(), counts):
                continue
            found[form] = _most(votes)
        surnames = {word for form, kind in found.items() if kind == PERSON and " " in form for word in form.split()}
        found = {form: _check_person(form, self._votes[form], surnames) for form in found}
        found = {form: kind for form, kind in found.items() if kind != UNKNOWN or not _is_of_function_words(form)}
        for form, kind in self._sure.items():
            found[form] = kind or found.get(form) or CONCEPT
        return found

    def find(self, types: dict[str, str]) -> list[tuple[int, int, str]]:
        """Return (start, end, form) of every occurrence of the forms, in order, without overlap.

        Forms of address belong to the form ("Mrs. Cratchit"); `types` gets these forms, too.
        """
        names = sorted(match_forms(self._folded.text, self._words, types))
        found = [self._with_address(*name, types) for name in names]
        counts = Counter(form for _, _, form in found)
        counted = Counter(form for start, _, form in found if self._is_amount(start))
        units = {form for form, count in counted.items() if 2 * count > counts[form]}
        return [
            (start, end, form)
            for start, end, form in found
            if form not in units and not self._is_label(start, end) and not self._is_skipped(start, end)
        ]

    def _with_address(self, start: int, end: int, form: str, types: dict[str, str]) -> tuple[int, int, str]:
        """Return an occurrence with the forms of address before it, which make it a person."""
        text = self._folded.text
        while (before := _WORD_BEFORE.search(text, max(start - 20, 0), start)) and key_of(
            before.group(1)
        ) in HONORIFICS:
            start = before.start(1)
        if end - start == len(form):
            return start, end, form
        types[text[start:end]] = PERSON
        return start, end, text[start:end]

    def _is_amount(self, start: int) -> bool:
        """Whether a number stands before a place, so that the word there is a unit: "20 MiB"."""
        return _AMOUNT.search(self._folded.text, max(start - 3, 0), start) is not None

    def _may_be_name(self, form: str, start: int) -> bool:
        letters = [letter for letter in form if letter.isalpha()]
        if len(letters) < 2 or form.count(" ") >= MAX_WORDS or self._is_skipped(start, start + len(form)):
            return False
        if not any(letter.isupper() or not (letter.islower() or letter.isupper()) for letter in letters):
            return False
        words = form.split()
        return len(set(words)) == len(words) and not any(map(self._is_shouted, words))

    def _is_shouted(self, word: str) -> bool:
        """Whether a word is in capitals only for emphasis, or glued to the next: "HISTORYTHE"."""
        is_long = word.isupper() and word.isalpha() and len(word) > _LONGEST_ACRONYM
        return is_long and word.casefold() not in self._titled

    def _is_named(self, word: str, n_named: int, counts: Mapping[str, tuple[int, int]]) -> bool:
        """Whether one word is a name: not mostly in small letters, and not seen as a name by chance."""
        inside, first = counts.get(word, (0, 0))
        is_mostly_small = self._lower[word.lower()] > inside and not word.isupper()
        if (not inside or is_mostly_small) and is_common_word(word.upper()):
            return False
        return n_named >= _LEAST_ALIKE * (inside + first) or n_named > 2

    def _count_capitals(self) -> dict[str, tuple[int, int]]:
        """Return word -> how often it stands inside a sentence, and first in one."""
        inside: Counter[str] = Counter()
        first: Counter[str] = Counter()
        for start, written in self._words:
            word = _without_s(written)
            if word in self._votes:
                (first if self._folded.is_first(start) else inside)[word] += 1
        return {word: (inside[word], first[word]) for word in inside | first}

    def _is_label(self, start: int, end: int) -> bool:
        """Whether a name is the label of a line: the speaker of a transcript, "Owner:"."""
        return self._folded.is_first(start) and _LABEL.match(self._folded.text, end) is not None

    def _is_skipped(self, start: int, end: int) -> bool:
        return any(first <= start and end <= last for first, last in self._skipped)


def _is_of_function_words(form: str) -> bool:
    """Whether a form has only English function words and is no acronym: "What", "How Do I"."""
    from spacy.lang.en.stop_words import STOP_WORDS  # slow to import

    return not form.isupper() and all(word.lower() in STOP_WORDS for word in form.split())


def find_words(text: str) -> list[tuple[int, str]]:
    """Return (start, word) of the words of a text, in order."""
    return [(match.start(), match.group()) for match in _WORD.finditer(text)]


def _without_s(word: str) -> str:
    return word[:-2] if word.endswith(("'s", "’s")) else word


def match_forms(text: str, words: Iterable[tuple[int, str]], forms: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, form) of the forms in a text, whole words only, the longest first, without overlap.

    Args:
        words: `find_words(text)`.
    """
    forms = sorted(forms)
    if unspaced := [form for form in forms if is_unspaced(form[0])]:
        yield from _match_unspaced(text, unspaced)
    by_first: defaultdict[str, list[str]] = defaultdict(list)
    for form in forms:
        if not is_unspaced(form[0]) and (word := _WORD.search(form)):
            by_first[word.group()].append(form)
    for same in by_first.values():
        same.sort(key=len, reverse=True)
    place = 0
    for start, word in words:
        if start < place:
            continue
        candidates = by_first.get(word) or by_first.get(_without_s(word)) or ()
        for form in candidates:
            end = start + len(form)
            if text.startswith(form, start) and not text[end : end + 1].isalnum():
                yield start, end, form
                place = end
                break


def _match_unspaced(text: str, forms: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    pattern = re.compile("|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form)))))
    yield from ((match.start(), match.end(), match.group()) for match in pattern.finditer(text))


def _check_person(form: str, votes: Counter[str], surnames: Collection[str]) -> str:
    """Return the type of a form, a person only with more evidence than one label.

    A small pipeline takes many words of a manual for people. A given name confirms it, a full name with the word, or a
    second occurrence with the same label. A given name also decides where nothing else has a type for a form.
    """
    kind = _most(votes)
    first, *rest = form.split()
    is_given = first.upper() in GIVEN_NAMES
    if rest:
        return PERSON if kind == UNKNOWN and is_given else kind
    is_sure = is_given or form in surnames or votes[PERSON] == votes.total() > 1
    return PERSON if is_given else UNKNOWN if kind == PERSON and not is_sure else kind


def _most(votes: Mapping[str, int]) -> str:
    return min(votes, key=lambda kind: (kind == UNKNOWN, -votes[kind], kind))
