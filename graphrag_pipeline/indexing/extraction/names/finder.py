"""Names in one document by capitalization: the first step of embedded extraction.

A phrase is a run of capitalized words with the connectors that a name may contain ("Ghost of Christmas Past"). A
capital is weak evidence at the start of a sentence or quotation and in a heading, where every word may have one. There,
a word counts only if the document writes it with a capital elsewhere, at least as often as without.

All functions are pure functions of the text of one document.

Add here: a rule about phrases. Keep out: word lists (`cues.py`), forms of one name (`forms/`), types (`types/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from string import ascii_uppercase

from graphrag_pipeline.indexing.extraction.names.affiliations import (
    ends_firm,
    ends_person,
    is_plural_opener,
    opens_with_role,
    split_office,
)
from graphrag_pipeline.indexing.extraction.names.brands import is_well_known
from graphrag_pipeline.indexing.extraction.names.capitalization import (
    CapitalizationEvidence,
    token_rank,
)
from graphrag_pipeline.indexing.extraction.names.cues import (
    ACRONYMS,
    DAY_NAMES_BEFORE,
    DAYS,
    EVENT_TAILS,
    GIVEN_NAMES,
    GRADES,
    GREETINGS,
    HONORIFICS,
    LEGAL_SUFFIXES,
    LONERS,
    MONTHS,
    OF_OPENERS,
    OPENER_SUFFIXES,
    OPENERS,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS_IN_CAPITALS,
    PLACE_HEADS,
    PLACE_TAILS,
    SEASONS,
    STOPWORDS,
    UNITS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.name_limits import (
    ADDRESSES,
    is_initial,
    is_origin,
    is_place,
    is_rank,
    keeps_possessive,
    opens_task,
    precedes_known_name,
    repeats,
    splits_list,
    starts_name,
)
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, drop_nameless, is_also_a_word, join_slashes
from graphrag_pipeline.indexing.extraction.names.phrases import (
    Phrase,
    PhrasePiece,
    ends_sentence,
    find_phrases,
    is_label,
    splits_after_person,
)
from graphrag_pipeline.indexing.extraction.names.written_names import (
    AFTER_PERSON,
    cut_plural,
    find_held,
    join_line_break,
    name_of,
)
from graphrag_pipeline.text.late_patterns import late_regex

_CALENDAR = DAYS | MONTHS | SEASONS
_SHORT_DATES = words("mon tue tues wed thu thur thurs fri sat feb mar apr jun jul aug sep sept oct nov dec")
_NUMBERED_WORDS = LONERS | GRADES | words("package plan option item line case")
_OPENING_PREPOSITIONS = words("under over beyond above below behind")
_OPENERS_OF = OF_OPENERS | UNITS
_AFTER_NAMES = words("esq esquire obe mbe cbe dbe kbe phd jr sr mp mps mep meps")  # ", Esq.", "MPs voted"
_REMARKS = words("faq faqs readme nb tip tips hint caution")  # in small letters, "hint" may be a term
_NO_NAMES = _CALENDAR | HONORIFICS | LONERS | _SHORT_DATES | _AFTER_NAMES | _REMARKS
_MAX_ACRONYM = 6  # letters
_AFTER_DATES = EVENT_TAILS | ORGANIZATION_TAILS | DAYS
_APOSTROPHE_NAME = late_regex(r"^\p{Lu}['’]\p{Lu}(?:\p{Ll}|\p{Lu}{2})")  # O'Brien, not I'll
_REGISTERED = late_regex(r"\p{Lu}{1,3}\d{5,}")  # the number of a company: SC482113
_CODE = late_regex(r"\p{Lu}{1,3}\d\w{0,2}")  # G5, G3a
_REPEATED = ORGANIZATIONS_IN_CAPITALS | {"WWW", "III"}
_LABELS = words("action actions decision decisions resolved agreed note noted carried")
_EXAMPLES = words("xyz foo bar baz qux fixme todo tbd")
_INITIALS = late_regex(r"(?:\p{Lu}\.){2,}")
_GREEK_TAIL = late_regex(r"(?<=\p{Lu})[-\u2010\u2011]\p{Greek}\w*+$")  # TNF-α
_NUMBERED = words("version versions release revision edition chapter section article part volume issue number no level")
_NUMBER = late_regex(r"\s+v?\d")
_NOUN_AFTER = late_regex(r"\s+(\p{Ll}{3,}+)\b(?<!ed|[^s]s|ly|ing)")
_ITEM_NUMBER = late_regex(r"(?:^|\n)[ \t]*(?:\d[\d./]*|\(?[a-z]\))[ \t]+\Z")
_TIME_BEFORE = late_regex(r"\d(?:[:.]\d\d|(?:[:.]\d\d)?\s?[ap]\.?m\.?)\s\(?$")
_IN_CODE = late_regex(r"\d/$")
_CODED_ON = late_regex(r"/\d{2,}|(?<=\b\p{Lu}{1,2}\d{1,3})\.\d{1,2}(?![\d.])")
_IN_NUMBER = late_regex(r"/\d+/\d")
_CURRENCIES = frozenset("$£€¥₹")
_INNER_CAPITAL = late_regex(r"^\p{Lu}\p{Ll}{2,}\p{Lu}\p{Ll}{2,}$")
_SUBJECT = late_regex(r"(?:['’]s)?[ \n]\p{Ll}{2}")  # before a verb, not "Whoop!"
_DEFINED = late_regex(r"[ \n]is[ \n]an?[ \n]\p{Ll}")
_HYPHENED = late_regex(r"[-\u2010\u2011]\p{Ll}")


def find_names(
    text: str, sentences: list[tuple[int, int]], headings: list[bool], small_words: frozenset[str] = frozenset()
) -> list[Name]:
    """Find the names in a document, in reading order; only names such as "Scrooge's nephew" overlap others.

    Args:
        text: the whole document.
        sentences: spans that cover the text, in order.
        headings: for each sentence, whether it is a heading (see `is_heading`).
        small_words: function words of the document's language, in lower case; a name never starts with one.
    """
    phrases = list(find_phrases(text, sentences, headings))
    evidence = CapitalizationEvidence(text, phrases, small_words)
    names: list[Name] = []
    for phrase in phrases:
        for pieces in _split_phrase(phrase, evidence, text):
            name = name_of(_cut_label(pieces, phrase, text), phrase, text, evidence.is_english)
            name = join_line_break(name, text, evidence)
            if len(pieces) == 1 and text.startswith(("-", "—"), name.end) and evidence.is_cut_off(pieces[0].key):
                continue
            if len(pieces) == 1 and _opens_compound(pieces[0], phrase, evidence, text):
                continue
            names.append(name)
            if pieces[-1].is_possessive:
                names.extend(find_held(name, text, sentences[phrase.sentence][1]))
    return drop_nameless(join_slashes(names, text), text, evidence)


def _split_phrase(phrase: Phrase, evidence: CapitalizationEvidence, text: str) -> Iterator[list[PhrasePiece]]:
    """Split a phrase into names: at possessives and stop words, without words that only open the sentence."""
    run: list[PhrasePiece] = []
    for number, piece in enumerate(phrase.pieces):
        if piece.is_connector:
            following = phrase.pieces[number + 1 :]
            is_cut = bool(run) and (
                splits_after_person(run, piece, following)
                or ends_person(run, piece, following)
                or ends_firm(run, piece, following)
                or splits_list(run, piece, following, evidence)
            )
        else:
            is_cut = _splits_phrase(number, phrase, evidence, run)
        if is_cut:
            yield from _trim(run, phrase, evidence, text)
            run = []
            continue
        if run and (repeats(piece, run, evidence) or starts_name(number, phrase, run, evidence)):
            yield from _trim(run, phrase, evidence, text)
            run = []
        run.append(piece)
        if is_label(number, phrase, text):  # "Maura Tighe", newline, "Attending: Jo Hill"
            run = run[:-1]
        is_split = piece.is_possessive and not keeps_possessive(piece, phrase, run, evidence)
        if is_split or (piece.text[-1] == "." and ends_sentence(run, phrase.pieces[number + 1 :])):
            yield from _trim(run, phrase, evidence, text)
            run = []
    yield from _trim(run, phrase, evidence, text)


def _splits_phrase(number: int, phrase: Phrase, evidence: CapitalizationEvidence, run: list[PhrasePiece]) -> bool:
    piece = phrase.pieces[number]
    if piece.key == "I" and run:  # "World War I", but not "the Scrooge I know"
        return phrase.is_before_verb
    if is_initial(number, phrase):
        return False
    is_shouted = phrase.is_heading and piece.key in STOPWORDS and not evidence.alone[piece.key]  # "WHO", not the WHO
    if _is_stopword(piece) or is_shouted:  # inside a title it stays: "Ghost of Christmas Yet To Come"
        is_opening = number == 0 and not phrase.is_weak and piece.key in _OPENING_PREPOSITIONS  # "of Under Armour"
        if is_opening and len(phrase.pieces) == 2:
            return False
        return not run or piece.is_after_break or piece is phrase.pieces[-1] or phrase.is_heading
    if phrase.is_heading:
        following = phrase.pieces[number + 1].key if number + 1 < len(phrase.pieces) else ""
        is_pair = (piece.key, following) in evidence.pairs or (
            bool(run) and ((run[-1].key, piece.key) in evidence.pairs or piece.key in PLACE_TAILS)
        )
        is_title = phrase.start == 0 and _is_title_of_body(number, phrase)
        is_given = piece.key in GIVEN_NAMES and evidence.is_name(following) and following not in PLACE_TAILS
        is_addressed = is_given or (run[0] if run else piece).text.rstrip(".") in ADDRESSES  # "Ms Priya Raman"
        return not (is_pair or is_title or is_addressed or evidence.is_name(piece.key) or is_place(piece.key))
    if phrase.start == 0 and _is_title_of_body(number, phrase):
        return False
    return evidence.is_emphasis(piece) and not evidence.is_name(piece.key) and not is_place(piece.key)


def _is_title_of_body(number: int, phrase: Phrase) -> bool:
    """Whether a word of the first line of a document is in the name of a body: "Penrith Road Allotment Society"."""
    following = phrase.pieces[number + 1 :]
    line = [*phrase.pieces[: number + 1], *takewhile(lambda piece: not piece.is_after_break, following)]
    if line[0].key in ORGANIZATION_HEADS and len(line) > 2 and line[1].key == "OF" and phrase.is_heading:
        return not any(piece.is_after_break for piece in line[1:])  # "UNIVERSITY OF WESTRAY"
    is_line = not any(piece.is_after_break or (piece.is_connector and piece.key != "&") for piece in line[1:])
    return is_line and line[-1].key in ORGANIZATION_TAILS and len(line) > 2


def _is_stopword(piece: PhrasePiece) -> bool:
    if piece.key in ACRONYMS and piece.text.isupper():
        return False
    key = piece.key.replace("’", "'")
    if "'" not in key or _APOSTROPHE_NAME.match(piece.text):
        return key in STOPWORDS
    return key.split("'")[0] in STOPWORDS or key.endswith("N'T")


def _trim(
    run: list[PhrasePiece], phrase: Phrase, evidence: CapitalizationEvidence, text: str
) -> Iterator[list[PhrasePiece]]:
    owner, holder = split_office(run, evidence.sure_family_names)
    if holder:
        yield from _trim(owner, phrase, evidence, text)
    pieces = holder or run
    while pieces and _drops_first(pieces, phrase, evidence, text):
        pieces = pieces[1:]
    if len(pieces) > 2 and pieces[0].key == "MASTER" and pieces[0] is not (holder or run)[0]:
        pieces = pieces[1:]  # "Harbour Master Ben Kitto"
    while pieces and _drops_last(pieces):
        pieces = pieces[:-1]
    if pieces and _is_entity(pieces, phrase, evidence, text):
        yield pieces


def _drops_first(pieces: list[PhrasePiece], phrase: Phrase, evidence: CapitalizationEvidence, text: str) -> bool:
    first = pieces[0]
    start = phrase.start + first.start
    if first.text.isupper() and len(pieces) > 1 and _IN_CODE.search(text, max(start - 12, 0), start):
        return True  # "24/02118/HOUS Binswood Cottage"
    is_greeting = first.key in GREETINGS and len(pieces) > 1
    is_role = opens_with_role(pieces, evidence.sure_family_names) or is_rank(pieces, phrase, evidence)
    if first.is_connector or is_greeting or is_role:
        return True
    is_opener = first.key in _OPENERS_OF or is_plural_opener(first, phrase)
    if is_opener and len(pieces) > 2 and pieces[1].key == "OF":
        return True
    if len(pieces) == 2 and first.key in GRADES and _CODE.fullmatch(pieces[1].text):  # "Stage G5" is "G5"
        return True
    if first.key in _CALENDAR and len(pieces) > 1:
        is_person = phrase.start + first.start in evidence.month_people and pieces[1].key in evidence.sure_family_names
        if first.key in SEASONS and len(pieces) > 2 and not phrase.is_weak:  # "the Winter Fuel Payment"
            return False
        return pieces[-1].key not in _AFTER_DATES and not pieces[1].is_connector and not is_person
    if len(pieces) == 1 or precedes_known_name(pieces, phrase, evidence):
        return len(pieces) > 1
    if not phrase.is_weak or first.start or first.key in PLACE_HEADS:
        return False
    return evidence.may_open(first.key) and not _is_defined(pieces, phrase, text)


def _drops_last(pieces: list[PhrasePiece]) -> bool:
    last = pieces[-1]
    if last.is_connector or (len(pieces) > 1 and last.key in STOPWORDS and last.key != "I"):
        return True
    is_day = last.key in DAYS and len(pieces) > 1 and pieces[-2].key not in DAY_NAMES_BEFORE
    return is_day and pieces[-2].key not in GIVEN_NAMES  # "Danilo Freitag"


def _is_entity(pieces: list[PhrasePiece], phrase: Phrase, evidence: CapitalizationEvidence, text: str) -> bool:
    """Whether the remaining pieces of a phrase are a name."""
    if len(pieces) == 2 and len(pieces[1].key) == 1 and pieces[0].text.rstrip(".") in ADDRESSES:  # "Mrs D"
        return False
    is_numbered = len(pieces) == 2 and len(pieces[1].key) == 1 and pieces[0].key in _NUMBERED_WORDS  # "Exhibit B"
    if is_numbered or all(p.is_connector or p.key in _NO_NAMES for p in pieces):
        return False
    last = phrase.start + pieces[-1].end
    if pieces[-1].key[-1].isdecimal() and _CODED_ON.match(text, last):  # "PA25/00417", "S24.17"
        return False
    if len(pieces) == 1 and pieces[0].text.isupper() and _IN_NUMBER.match(text, last):  # "SDNP/24/02118"
        return False
    if len(pieces) == 1 and text[last : last + 1] in _CURRENCIES:  # "NZ$1.4 billion"
        return False
    if len(pieces) > 1:
        if pieces[-1].key.endswith("AN") and is_origin(pieces):
            return False
        return not evidence.is_only_stressed(pieces) or _is_defined(pieces, phrase, text)
    word = pieces[0]
    start = phrase.start + word.start
    is_coded = _IN_CODE.search(text, max(start - 12, 0), start)
    if opens_task(word, text, phrase.start + word.end):
        return False
    if word.key == "JAN" and _NUMBER.match(text, phrase.start + word.end):  # "on Jan 12"
        return False
    if word.text.isupper() and _TIME_BEFORE.search(text, max(start - 12, 0), start):  # "at 4:00pm AEDT"
        return False
    if is_coded or word.key in LEGAL_SUFFIXES or _REGISTERED.fullmatch(word.text):
        return False  # "25/01834/HOU"
    if word.key in _LABELS and text.startswith(":", phrase.start + word.end):
        return False  # "ACTION: Mr Sykes to write"
    if len(word.key) < 2 or (len(word.key) <= 4 and set(word.key) <= set("IVXLC")) or _is_placeholder(word.key):
        return False
    is_brand = is_well_known(word.key) and not word.text.islower()
    if not is_brand and (evidence.is_common(word) or evidence.is_adjective(word.key)):
        return False
    is_label = _INITIALS.fullmatch(word.text) and word.text not in load_places()  # "S.I. 2011/1124"
    if is_label and _NUMBER.match(text, phrase.start + word.end):
        return False
    if is_place(word.key):
        return True
    if word.start == 0 and _is_item_label(word, phrase, text):
        return False
    is_written_small = evidence.lower[word.key.lower()] > 0
    is_small = is_written_small or is_also_a_word(word.key)
    if phrase.is_heading and word.key not in GIVEN_NAMES and not evidence.alone[word.key] and is_small:
        return False  # "2. Verbatim copying"
    if phrase.is_weak and word.start == 0:
        if word.key in OPENERS:
            return False
        acronym = cut_plural(_GREEK_TAIL.sub("", word.text))
        is_acronym = acronym.isupper() and len(word.key) <= _MAX_ACRONYM and not phrase.is_heading
        is_verbal = word.key.endswith(OPENER_SUFFIXES) and word.key not in evidence.family_names  # "Dredging of"
        is_name = evidence.is_name(word.key) and (evidence.alone[word.key] > 0 or not (is_written_small or is_verbal))
        is_coined = not phrase.is_heading and _INNER_CAPITAL.search(word.text) is not None  # "LeafHand"
        is_subject = not phrase.is_heading and _SUBJECT.match(text, phrase.start + word.end) is not None
        is_coined = is_coined or (is_subject and evidence.is_opening_name(word.key))
        is_coined = is_coined or (not phrase.is_heading and evidence.is_introduced(word.key, text, phrase.end))
        is_known = is_brand or is_acronym or is_name or is_coined or _is_person(word, phrase, evidence, text)
        return is_known or (not phrase.is_heading and evidence.is_proper(word.key) and not word.key.endswith("LY"))
    return True


def _is_defined(pieces: list[PhrasePiece], phrase: Phrase, text: str) -> bool:
    """Whether a sentence says what the name at its start is: "Tarn Vault is a backup server"."""
    is_first = (
        phrase.is_weak and not phrase.is_heading and not pieces[0].start and pieces[-1].end == phrase.end - phrase.start
    )
    return is_first and all(piece.text.istitle() for piece in pieces) and _DEFINED.match(text, phrase.end) is not None


def _opens_compound(word: PhrasePiece, phrase: Phrase, evidence: CapitalizationEvidence, text: str) -> bool:
    """Whether a word is the start of a common compound at the start of a sentence: "Nurse-led care"."""
    if (
        not phrase.is_weak
        or word.start
        or not word.text.istitle()
        or not _HYPHENED.match(text, phrase.start + word.end)
    ):
        return False
    return evidence.lower[word.key.lower()] > 0 or is_also_a_word(word.text)


def _is_item_label(word: PhrasePiece, phrase: Phrase, text: str) -> bool:
    """Whether a word is all that stands between the number of an item and a full stop: "7 Lettings."."""
    place = phrase.start + word.end
    return (
        text[place : place + 2] in (". ", ".\n", ": ")
        and _ITEM_NUMBER.search(text[max(phrase.start - 12, 0) : phrase.start]) is not None
    )


def _is_placeholder(key: str) -> bool:
    """Whether a word is one letter again and again, single letters with hyphens, or an example: "BBBBBB", "H-I-J"."""
    parts = key.strip(".").split(".")
    if len(parts) > 1 and "".join(parts) in ascii_uppercase:  # "A.B.C.D"
        return True
    is_repeated = (len(key) > 2 and len(set(key)) == 1 and key not in _REPEATED) or key.split("-")[0] in _EXAMPLES
    return is_repeated or (key.count("-") > 1 and all(len(part) == 1 for part in key.split("-")))


def _is_person(word: PhrasePiece, phrase: Phrase, evidence: CapitalizationEvidence, text: str) -> bool:
    """Whether a word at the start of a sentence is a given name, and not a noun: "Gene expression", "Mark the line"."""
    if not evidence.is_given_name(word.key):
        return False
    after = _NOUN_AFTER.match(text, phrase.start + word.end) if _is_noun_too(word.key) else None
    return after is None or after.group(1).upper() in AFTER_PERSON


def _is_noun_too(key: str) -> bool:
    """Whether English writes a given name more often without a capital: "gene", "will"."""
    small, capital = token_rank(key.lower()), token_rank(key.capitalize())
    return small is not None and (capital is None or small < capital)


def _cut_label(pieces: list[PhrasePiece], phrase: Phrase, text: str) -> list[PhrasePiece]:
    """Cut a last word that a number follows: "GNU General Public License, Version" of "Version 2"."""
    is_label = len(pieces) > 1 and pieces[-1].key in _NUMBERED and _NUMBER.match(text, phrase.start + pieces[-1].end)
    return pieces[:-1] if is_label and not pieces[-2].is_connector else pieces
