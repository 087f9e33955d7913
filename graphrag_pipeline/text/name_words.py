"""Words in names that say what is named: forms of address and legal forms.

All are in upper case, without a full stop.

Given names of many languages, from the bundled file `bundled/given_names.txt`.

The list is our own, made for this purpose from common knowledge; no other list was copied.

Other spellings of one English word: British and American, singular and plural.

Those of the former are by endings and letters, not by a dictionary: "TUMOUR" is "TUMOR". The rules also change words
that have one spelling only ("SCIENCE"), so use the result only to compare.

Entity types that the package itself knows; documents and models may have any others.

The first four are those of Microsoft GraphRAG's default prompt.

Keep out: names themselves.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from importlib.resources import files

import regex

from graphrag_pipeline.text.late_patterns import late_regex

PERSON, ORGANIZATION, GEO, EVENT = "PERSON", "ORGANIZATION", "GEO", "EVENT"
IDENTIFIER = "IDENTIFIER"
"""Of systems, tables, tickets and files: `dim_customer`, `TICKET-118`."""
DOUBTFUL = "DOUBTFUL"
"""Only of mentions: an IDENTIFIER if the corpus also has a mention of it with another type, else no entity."""
CONCEPT = "CONCEPT"
"""Of terms, which are not names."""
UNKNOWN = "UNKNOWN"
"""Of what has no known type; agrees with all types."""


_MIN_LETTERS = 5
_SPELLINGS = tuple(
    (late_regex(british), american)
    for british, american in (
        (r"OUR(?=$|S$|ED$|ING$|AL$|ABLE$|ITE$)", "OR"),
        (r"(?<=[B-DF-HJ-NP-TV-Z])(?:AE|OE)(?=[A-Z])|^(?:AE|OE)(?=[A-Z])", "E"),
        (r"(?<=\w[LNRTMZCG])IS(?=(?:E|ES|ED|ING|ATION|ATIONS)$)", "IZ"),
        (r"YSE(?=$|D$|S$)", "YZE"),
        (r"(?<=[TB])RE(?=$|S$)", "ER"),
        (r"LL(?=ED$|ING$|ER$)", "L"),
        (r"OGUE(?=$|S$)", "OG"),
        (r"(?<=EN)CE$", "SE"),
    )
)


def to_american(word: str) -> str:
    """Return a key that is equal for the British and the American spelling of a word in upper case."""
    if len(word) < _MIN_LETTERS:
        return word
    for british, american in _SPELLINGS:
        word = british.sub(american, word)
    return word


def singular_of(word: str, known: Container[str]) -> str | None:
    """Return the singular of a plural if it is one of the known words: "policies" -> "policy"."""
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss"):
        return None
    spellings = (f"{word[:-3]}y" if word.endswith("ies") else "", word[:-2] if word.endswith("es") else "", word[:-1])
    return next((spelling for spelling in spellings if len(spelling) > 2 and spelling in known), None)


@cache
def load_given_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the given names of women only in all languages, and all given names, in upper case (45 KB are read)."""
    text = (files("graphrag_pipeline") / "bundled" / "given_names.txt").read_text(encoding="utf-8")
    _, women, others = text.split("\n\n")
    return _names_of(women), _names_of(women) | _names_of(others)


def _names_of(part: str) -> frozenset[str]:
    return frozenset(name.upper() for line in part.split("\n") if not line.startswith("#") for name in line.split())


FEMALE_GIVEN_NAMES, GIVEN_NAMES = load_given_names()
"""Given names of women only, in all languages, and all given names, in upper case."""


def words(text: str) -> frozenset[str]:
    """Return the words of a text in upper case."""
    return frozenset(text.upper().split())


FEMALE_HONORIFICS = words(
    "mrs ms miss lady madam madame mme mlle mademoiselle dame queen princess duchess countess aunt sra srta"
)
"""Before the name of a woman."""
MALE_HONORIFICS = words("mr sir monsieur signor señor sr herr herrn lord king prince father brother uncle m d")
"""Before the name of a man."""
HONORIFICS = FEMALE_HONORIFICS | words("""
mr sr messrs dr prof professor doctor sir lord master monsieur signor signora signore senor señor señora don doña herr
frau fräulein king prince emperor empress tsar czar duke archduke archduchess infante infanta landgrave margrave count
baron baroness earl marquis viscount pope bishop
archbishop cardinal rev revd reverend cllr cllrs drs profs professors pc pcso cmdr cdr adm supt insp
father brother sister uncle cousin captain capt colonel col general gen major
lieutenant lt sergeant sgt corporal admiral commander president chancellor premier senator sen governor gov
prefect congressman congresswoman representative rep mayor judge justice justices honorable honourable
ambassador sheikh sheik sultan ayatollah imam
rabbi mullah
hon detective inspector minister chairman chairwoman ceo herrn kanzler kanzlerin bundeskanzler bundeskanzlerin
councillor councillors councilman councilwoman alderman chief director engineer clerk treasurer coach striker goalkeeper
präsident präsidenten präsidentin ministerin ministerpräsident außenminister außenministerin président présidente
presidente
""")
"""Before the name of a person."""
REGAL = words("""
king queen prince princess emperor empress tsar czar duke duchess archduke archduchess infante infanta pope saint st
""")
"""Forms of address that are part of the name: "Pope Francis", "Prince Albert"."""
RANKS = words("prime vice deputy chief former acting interim town police finance fire city county district borough")
"""Before a form of address, part of it: "Prime Minister"."""
LEGAL_SUFFIXES = words(
    "inc incorporated ltd limited llc llp plc corp corporation co company gmbh ag sa spa srl sarl se kg kgaa nv bv"
)
"""Behind the name of a company."""


def key_of(word: str) -> str:
    """Return a word as these lists have it: in capitals, without a full stop."""
    return word.upper().rstrip(".")


def split_honorifics(form: str) -> tuple[list[str], list[str]]:
    """Return the forms of address at the start of a person's name, and its other words; there always is one."""
    parts = form.split()
    n_first = 0
    while n_first < len(parts) - 1:
        key, following = key_of(parts[n_first]), key_of(parts[n_first + 1])
        if not ((key in HONORIFICS and key not in REGAL) or (key in RANKS and following in HONORIFICS)):
            break
        n_first += 1
    return parts[:n_first], parts[n_first:]


def is_acronym_of(short: str, long: str) -> bool:
    """Whether the capitals of `short` are the initials of the words of `long`.

    Words in small letters and a legal form at the end are optional: "IBM" is "International Business Machines
    Corporation".
    """
    letters = "".join(letter for letter in short if letter.isupper())
    parts = regex.findall(r"[\p{L}\p{M}]+", long)
    spellings = [parts, parts[:-1]] if parts and parts[-1].upper() in LEGAL_SUFFIXES else [parts]
    initials = {"".join(part[0] for part in spelling).upper() for spelling in spellings}
    capitals = {"".join(part[0] for part in spelling if part[0].isupper()) for spelling in spellings}
    return len(letters) > 1 and letters in initials | capitals
