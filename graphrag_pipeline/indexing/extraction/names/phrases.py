"""Phrases: runs of capitalized words with the connectors that a name may contain ("Ghost of Christmas Past").

Regular expressions find the phrases of one document and split them into pieces.

Keep out: whether a phrase is a name (`finder.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import regex

from graphrag_pipeline.indexing.extraction.names.cues import (
    BYNAMES,
    DESCRIBING_HONORIFICS,
    EVENT_TAILS,
    GIVEN_NAMES,
    HONORIFICS,
    LEGAL_SUFFIXES,
    NOBLE,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PERSON_ROLES,
    PLACE_TAILS,
)
from graphrag_pipeline.text.late_patterns import late_regex

MAX_HEADING = 120  # characters
MIN_ENTRIES = 3  # lines with codes of the same letters, which are a list
MIN_SHOUTED = 4  # words in capitals in a row, which are emphasis and not a name

_SHOUTED_SHARE = 0.7  # of the words of a sentence

_ABBREVIATION = (
    r"(?:Mr|Mrs|Ms|Dr|St|Prof|Rev|Hon|Capt|Col|Gen|Lt|Sgt|Cmdr|Cdr|Adm|Maj|Brig|Supt|Insp|Det|Cpl|Sen|Rep|Gov|Messrs"
    r"|Mt|Ft|Mme|Mlle|Sra|Srta)\."
)
_TAIL = r"(?:(?:Inc|Ltd|Corp|Co|Bros|Jr|Sr)\.|S\.[pP]\.A\.?|S\.[rR]\.[lL]\.?)"
_BODY = r"\p{Lu}[\p{L}\p{M}\p{Nd}]*+"
_OWNED = (
    "Yard|Union|Association|Club|Hall|Market|Park|Arms|Federation|Guild|Society|Council|Institute|Trust|Company|Home"
    "|Hospital|Lane|Street|Close|Court|Party|Front|League|Movement|Congress|Alliance|Group|Forum|Committee|Network|Panel"
    "|Organi[sz]ation|Cooperative|Co-operative|Collective|Development|Foundation|Fund|Cent(?:er|re)|Bank|Assembly|Rights"
    "|Charter|Commission|Agency|Authority|Confederation|Chamber|Coalition"
)
_SCOPE = "(?:International|National|General|United|Mutual|Regional|Central|Welfare|Housing|Credit|Benevolent)"
_INSIDE = (
    r"(?:['’](?=\p{Lu}\p{Ll}|\p{Ll}{2})[\p{L}\p{M}]++"  # O'Brien, Qur'an
    r"|[-\u2010\u2011](?:\s*\n\s*)?(?:\p{Ll}{1,5}+[-\u2010]){0,2}+\p{Lu}[\p{L}\p{M}\p{Nd}]*+"  # Mar-a-Lago
    r"|(?<=\bCo)[-\u2010\u2011]op(?:erat(?:ives?|ion))?\b"
    rf"|(?<=s)['’](?=[ ](?:{_SCOPE}[ ])?(?:{_OWNED})\b)|(?<=S)['’](?=[ ](?:{_OWNED.upper()})\b)"  # Tanners' Yard
    r"|&\p{Lu}[\p{L}]*+|[-\u2010\u2011](?:\d++\p{Greek}?+|\p{Greek}[\p{L}\p{Nd}]*+))*+"  # IL-1β, NF-κB
)
_WORD = rf"(?:{_ABBREVIATION}|{_TAIL}|(?:\p{{Lu}}\.){{2,}}|\p{{Lu}}\.(?=\s?\p{{Lu}})|{_BODY}{_INSIDE})(?:['’][sS]\b)?"
_GAP = r"(?:[ \t\u00a0]++(?:\n[ \t]*+)?|\n[ \t]*+)"
_OFFICES = "Department|Ministry|Minister|Secretary|Institute|Office|Committee|School|Faculty|Bureau|College|Agency"
_BODIES = (
    "Administration|Agency|Authority|Board|Bureau|Commission|Committee|Council|Department|Executive|Inspectorate|"
    "Institute|Office|Service|Tribunal"
)
_FIRM_ENDS = "Sons?|Nephews?|Daughters?|Co|Company|Brothers|Partners|Associates"
_HEADS_OF_FIELDS = (
    rf"{_OFFICES}|Authority|Commission|Council|Society|Association|Cent(?:er|re)|Court|Academy|Directorate|Alliance"
    "|Chamber|Programme|Board|Bank"
)
_CONNECTOR = (
    r"(?:of\s+the|of|de\s+l[ao]s?|de|del|della|di|da|dos?|du|des|bin|ibn|ben|van\s+de[rn]?|van|von\s+der|von|zu|zum|"
    rf"upon|ter|ten|af|av|ng|y|&|(?<=(?:Yet|Back|Road|Guide|Ode|Introduction|Mission|Campaign|Committee|Coalition)\s)to(?:\s+the)?|the(?=\s+(?:{BYNAMES})\b(?!\s+\p{{Lu}}))|and(?=\s+(?:{_FIRM_ENDS})\b)|"
    r"(?<=(?:Cent(?:er|re)|Institute|Council|Fund|Association|Society|Committee|Agency|Organi[sz]ation|Bureau|"
    r"Foundation|Commission|Alliance|School|Academy|Board|Movement|Campaign|Bank|Party)\s)(?:for(?:\s+the)?|on)|"
    rf"(?<=\b[Tt]he\s(?:\p{{Lu}}\p{{L}}+\s)?(?:{_OFFICES}|Assembly|Authority)\s)for(?:\s+the)?|"
    r"(?<=(?:Treaty|Convention|Agreement|Protocol|Covenant|Declaration)\s)(?:on(?:\s+the)?|for\s+the|against)|"
    rf"(?<=\b[Tt]he\s(?:\p{{Lu}}\p{{Ll}}+\s){{1,3}})and(?=\s+(?:\p{{Lu}}\p{{Ll}}+\s+){{1,2}}(?:{_BODIES})\b)|"
    r"(?<=\bCourt\s)on|(?<=\b[Tt]he\s(?:Club|Campaign|Coalition|Movement)\s)for|"
    rf"and(?<=\b(?:{_HEADS_OF_FIELDS})\s(?:of|for|on)\s(?:\p{{Lu}}\p{{L}}+\s){{1,3}}and))"
)
_PHRASE = late_regex(
    rf"(?<![\p{{L}}\p{{M}}\p{{Nd}}_]){_WORD}"
    rf"(?:(?:{_GAP}(?:{_CONNECTOR}{_GAP}|[dD]['’](?=\p{{Lu}}\p{{Ll}})|(?:al|el|ad|ar|as|an|ud)-(?=\p{{Lu}}\p{{Ll}}))?{_WORD})|,?\s(?:Inc|Ltd|LLC|Corp|Jr|Sr)\b\.?)*+"
)
_ORGANIZATION_WORDS = ORGANIZATION_TAILS | ORGANIZATION_HEADS
_NOT_IN_PERSONS = _ORGANIZATION_WORDS | PERSON_ROLES | {"OF"}  # "Minister of Finance of France"
_LETTERED = frozenset({"BLOCK", "FLAT", "WARD", "UNIT", "ROOM", "GATE", "WING", "HALL", "LOT", "PLOT", "TEAM", "GROUP"})
_OFS = frozenset({"OF", "VON", "VAN", "DE", "DEL", "DU"})
_LIST_LETTER = late_regex(
    r"\p{Lu}\.\s++(?=\p{Lu}\p{Ll}++\s++(?:the|an?|any|all|each|every|in|on|at|to|and|or|with|for|from|of|this|that|your)\b)"
)
_LABELLED = late_regex(r"\p{Lu}\.\s++(?=\p{Lu}\p{Ll})")  # "She presented paper C. Sales had fallen"
_LABEL_BEFORE = late_regex(r"\b(?:[Pp]aper|[Ii]tem|[Oo]ption|[Aa]ppendix|[Aa]nnex|[Ss]chedule|[Pp]lan)\s$")
_ATTENDANCE = late_regex(r"\p{Lu}[\p{L} ]{2,30}:\s[^,;(]+[,;(][^,;(]+[,;(]")  # "Present: Ann Hill (Chair), Bo Lee"
_ROLL_CALL = late_regex(
    r"(?:Apologies|Present|Also present|In attendance|Absent|Attendees|Members present|Remote|Regrets)"
    r"[\p{L} ]{0,25}:\s\p{Lu}"
)
_BYLINE = late_regex(r"[Bb]y\s\p{Lu}\p{Ll}+(?:\s\p{Lu}[\p{L}.’'-]*){1,3}$")  # of an article: "By Ann Hill"
_LIST_HEAD = late_regex(r"(?:\s\([^()\n]*\))?(?:,|,?\s(?:and|or))\s\p{Lu}")
_UNDERLINE = late_regex(r"\s*\n[ \t]*([-=~])\1{2,}\s*$")
_SMALL = r"of|the|a|an|and|or|for|to|in|on|with|from|by|at"
_TITLE_CASE = late_regex(  # "4. Conveying Verbatim Copies."
    rf"(?:[\dA-Z.()]+\s+)?\p{{Lu}}[\p{{L}}'’-]*+(?:\s+(?:{_SMALL}|\p{{Lu}}[\p{{L}}'’-]*+|\d+))*(?<!\.)\s*\."
)
_LABEL = late_regex(r"[\d.()a-zA-Z]{1,8}\s+")
_PIECE = late_regex(r"\S+")
_HYPHEN_GAP = late_regex(r"(?<=[-\u2010\u2011])\s+")
_POSSESSIVE = late_regex(r"['’][sS]$")
_PRONOUN_I = late_regex(r"\s+(?:am|know|knew|think|saw|met|have|love|loved|want|mean|once|ever|never)\b|['’]")
_JOIN = "\uffff"  # replaces the white space inside a hyphenated word
_QUOTES = '"“”„«»‘(['
_TABLE_HEAD = late_regex(
    r"^[ \t]*[|│][^\n]*\n(?=[ \t]*(?:\|(?:[ \t]*:?-{3,}:?[ \t]*\|)+|[├╞┡][─═━┼╪╇]+))", regex.MULTILINE
)
_ENTRY = late_regex(r"^[ \t>*|│-]*(?P<code>(?P<letters>\p{Lu}{1,4})-?\d{1,4})[.:)]?[ \t|│]+(?=\p{Lu})", regex.MULTILINE)


@dataclass(frozen=True, slots=True)
class Phrase:
    pieces: tuple[PhrasePiece, ...]
    start: int
    end: int
    sentence: int
    is_weak: bool  # its first word would have a capital whatever it is
    is_heading: bool
    is_before_verb: bool  # what follows makes an "I" at its end the pronoun


@dataclass(frozen=True, slots=True)
class PhrasePiece:
    text: str  # white space folded, possessive dropped
    key: str  # upper case, without final full stop
    start: int  # offsets within the phrase
    end: int  # of the text without its possessive
    is_possessive: bool
    is_connector: bool
    is_after_break: bool  # a line ends before it


def is_heading(text: str, start: int, end: int) -> bool:
    """Whether a sentence is a heading or a fragment: short without final punctuation, or written in capitals."""
    sentence = text[start:end].strip()
    if not sentence or len(sentence) > MAX_HEADING or _ATTENDANCE.match(sentence) or _ROLL_CALL.match(sentence):
        return not sentence
    if _BYLINE.match(sentence) and sentence.split()[1].upper() in GIVEN_NAMES:
        return False
    if sentence.isupper() and " " in sentence:
        return True
    if sentence[-1] in "-=~" and "\n" in sentence:
        sentence = _UNDERLINE.sub("", sentence)
    elif sentence[-1] == "." and _TITLE_CASE.fullmatch(sentence) and _is_line(text, start, end):
        return True
    return sentence.rstrip("\"'”’)]»*_")[-1:] not in tuple(".!?…:;,。！？।-—")


def _is_line(text: str, start: int, end: int) -> bool:
    """Whether a sentence and at most a number before it fill a line, or it ends with the number of a part."""
    sentence = text[start:end].strip()
    if sentence[-2:-1].isdigit():  # "Next Chapter 30."
        return True
    first = text.find(sentence, start)
    before = text[text.rfind("\n", 0, first) + 1 : first]
    after = text[first + len(sentence) : text.find("\n", first + len(sentence))]
    return not after.strip() and (not before.strip() or _LABEL.fullmatch(before) is not None)


def is_label(number: int, phrase: Phrase, text: str) -> bool:
    """Whether the last word of a phrase is alone on its line before a colon, and so begins something else."""
    is_last = 0 < number == len(phrase.pieces) - 1
    return is_last and phrase.pieces[number].is_after_break and text.startswith(":", phrase.end)


def find_phrases(text: str, sentences: list[tuple[int, int]], headings: list[bool]) -> Iterator[Phrase]:
    heads, entries = _find_table_heads(text), _find_entries(text)
    for number, (start, end) in enumerate(sentences):
        for match in _PHRASE.finditer(text, start, end):
            first, last = match.span()
            is_shouted = match.group().isupper() and _is_shouted(match.group(), text, start, end)
            heading = headings[number] or is_shouted or (bool(heads) and _is_inside(first, heads))
            letter = _LIST_LETTER.match(text, first) if first - start < 12 else None
            if text.startswith(".", first + 1) and _LABEL_BEFORE.search(text, max(start, first - 12), first):
                letter = letter or _LABELLED.match(text, first)
            is_listed = letter is not None and letter.end() < last
            if letter and is_listed:  # "K. Preserve the section"
                first = letter.end()
            elif first in entries and entries[first][1] < last:  # "E12 Ignition failed"
                end_of_code, label = entries[first]
                yield Phrase(_pieces(text[first:end_of_code]), first, end_of_code, number, True, heading, False)
                first, is_listed = label, True
            weak = is_listed or heading or (_is_weak(text, first, start) and not _heads_list(text, first, last))
            words = text[first:last]
            verb = words.endswith("I") and _PRONOUN_I.match(text, last) is not None
            yield Phrase(_pieces(words), first, last, number, weak, heading, verb)


def _find_table_heads(text: str) -> list[tuple[int, int]]:
    """Return the spans of the rows with the names of a table's columns, which are labels as headings are."""
    return [match.span() for match in _TABLE_HEAD.finditer(text)] if "|" in text or "│" in text else []


def _find_entries(text: str) -> dict[int, tuple[int, int]]:
    """Return the codes that begin the lines of a list: start -> (end of the code, start of the label after it)."""
    entries = list(_ENTRY.finditer(text))
    counts = Counter(entry["letters"] for entry in entries)
    return {
        entry.start("code"): (entry.end("code"), entry.end())
        for entry in entries
        if counts[entry["letters"]] >= MIN_ENTRIES
    }


def _is_inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _is_shouted(written: str, text: str, start: int, end: int) -> bool:
    """Whether capitals are emphasis: four words and more, or any in a sentence that is nearly all in capitals."""
    if len(written.split()) >= MIN_SHOUTED:
        return True
    words = text[start:end].split()
    return sum(map(str.isupper, words)) >= max(2 * MIN_SHOUTED, _SHOUTED_SHARE * len(words))


def splits_after_person(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether the name of a person ends before a connector.

    It does in "Mr. Smith of Deutsche Bank" and "Frau Müller von der Siemens AG", but not in "Duke of York", "Lord Byron
    of Rochdale" and "Frau Müller von der Heide".
    """
    if connector.key == "Y":
        return following[0].key in HONORIFICS or following[0].text in ("D.", "Dña.")
    if len(run) < 2 or any(piece.key in _NOT_IN_PERSONS for piece in run[1:]):
        return False
    is_titled = run[0].key in HONORIFICS and not all(piece.key in HONORIFICS for piece in run)
    if is_titled and connector.key == "OF" and run[0].key not in NOBLE:
        return run[0].key not in DESCRIBING_HONORIFICS or run[1].key in GIVEN_NAMES
    is_known = is_titled or run[0].key in GIVEN_NAMES
    if is_known and connector.key == "OF" and len(following) > 1 and following[-1].key in PLACE_TAILS:
        return True  # "James Okafor of Mill Street"
    return is_known and connector.key in _OFS and any(piece.key in _ORGANIZATION_WORDS for piece in following)


def ends_sentence(run: list[PhrasePiece], following: tuple[PhrasePiece, ...]) -> bool:
    """Whether a full stop in a phrase ends the sentence: "World War I. World War II", "Acme Corp. Sales fell"."""
    last = run[-1]
    if len(run) < 2 or not last.text.endswith(".") or not following or following[0].is_connector:
        return False
    if run[-2].key in _LETTERED and len(last.key) == 1:  # "the roof of Block B. Leonora reported"
        return True
    if last.key in {"I", "V", "X"}:
        return run[-2].key in EVENT_TAILS or following[0].key == run[0].key
    return last.key in LEGAL_SUFFIXES and following[0].key not in ORGANIZATION_TAILS


def _heads_list(text: str, start: int, end: int) -> bool:
    """Whether a phrase is the first of a list after a colon: "three firms: Acme, Brambex and Plimco"."""
    return text[max(start - 2, 0) : start] == ": " and _LIST_HEAD.match(text, end) is not None


def _is_weak(text: str, place: int, sentence_start: int) -> bool:
    """Whether the capital at `place` may only mark the start of a sentence or quotation."""
    before = text[max(sentence_start, place - 12) : place].rstrip()
    bare = before.rstrip(_QUOTES + "'’*_ \n")
    if not bare:
        return place - sentence_start <= 12
    if bare[-1] in ".!?:…•|":
        return True
    return len(bare) < len(before) and bare[-1] in ",;-—–"


@lru_cache(maxsize=1 << 15)
def _pieces(phrase: str) -> tuple[PhrasePiece, ...]:
    pieces: list[PhrasePiece] = []
    for match in _PIECE.finditer(_HYPHEN_GAP.sub(lambda gap: _JOIN * len(gap.group()), phrase)):
        written = match.group().replace(_JOIN, "").rstrip(",")
        body = _POSSESSIVE.sub("", written)
        end = match.start() + len(match.group().rstrip(",")) - (len(written) - len(body))
        connector = body.islower() or body == "&"
        broken = bool(pieces) and "\n" in phrase[pieces[-1].end : match.start()]
        key = body.upper().rstrip(".")
        pieces.append(PhrasePiece(body, key, match.start(), end, body != written, connector, broken))
    return tuple(pieces)
