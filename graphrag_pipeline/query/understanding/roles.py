"""Roles that one person has to another: "nephew", "employer", "teacher", and the roles in the other direction.

"Who is Scrooge's nephew?" is also answered by a text that calls Scrooge the uncle of a person. A role has a gender if
the word says so. English alone. Keep out: sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphrag_pipeline.query.question import stem

_PAIRS = """
father mother parent stepfather stepmother : son daughter child boy girl stepson stepdaughter
grandfather grandmother grandparent : grandson granddaughter grandchild
uncle aunt : nephew niece
husband wife spouse : husband wife spouse widow widower
brother sister sibling half-brother half-sister : brother sister sibling half-brother half-sister
brother-in-law sister-in-law : brother-in-law sister-in-law
father-in-law mother-in-law : son-in-law daughter-in-law
cousin : cousin
fianc\u00e9 fianc\u00e9e : fianc\u00e9 fianc\u00e9e
friend : friend
colleague : colleague
partner : partner
rival : rival
neighbour neighbor : neighbour neighbor
teacher tutor mentor master : pupil student apprentice
employer master boss : clerk servant employee apprentice assistant
predecessor : successor
"""
_MALE = """father son boy stepfather stepson grandfather grandson uncle nephew husband widower brother half-brother
brother-in-law father-in-law son-in-law fianc\u00e9"""
_FEMALE = """mother daughter girl stepmother stepdaughter grandmother granddaughter aunt niece wife widow sister
half-sister sister-in-law mother-in-law daughter-in-law fianc\u00e9e"""
_SAID_BY_TEXT = """
husband wife spouse : marry married
fiancé fiancée : engaged engagement betrothed marry married
brother sister sibling half-brother half-sister : son daughter
teacher tutor mentor pupil student : teach study
predecessor successor : succeed replace follow
employer : employ hire
author writer : write novel book
director : direct
producer : produce
composer : compose
founder : found establish
owner : own
"""
"""Roles : other words, besides the role of the other person, by which texts say them."""
_GENERAL = {"child": "son daughter boy girl", "parent": "father mother", "spouse": "husband wife"} | {
    "sibling": "brother sister",
    "fianc\u00e9": "fianc\u00e9e",
    "student": "pupil",
    "teacher": "tutor mentor master",
    "master": "employer boss",
}
"""A role : roles that are kinds of it, or other words for it."""
GROUPS = frozenset(
    """agency airline airport army association authority bank board body brewery brigade business chain charity church
    city club college commission committee company consortium council country court department developer district
    enterprise factory federation firm force foundation fund government group hospital institute institution island
    league library maker manufacturer mill mine ministry museum network office operator orchestra organisation
    organization owner panel partnership party plant port producer project province publisher railway region retailer
    school ship shipyard side society start-up startup state station store team theatre town trust union university
    village yard""".split()  # noqa: SIM905
)
"""Nouns for a body or a place that a text has named before: "the company's lawyer"."""
_GENDERS = {word: gender for gender, words in (("male", _MALE), ("female", _FEMALE)) for word in words.split()}


@dataclass(frozen=True)
class Role:
    """A role.

    Attributes:
        gender: of the person who has it: male, female, or "" if the word does not say.
        inverses: roles of the other person.
        said_by: other words by which texts say it.
    """

    word: str
    gender: str
    inverses: tuple[str, ...]
    said_by: tuple[str, ...]

    @property
    def same(self) -> tuple[str, ...]:
        """The role, its kinds, and the role that it is a kind of."""
        kinds = _GENERAL.get(self.word, "").split()
        return (self.word, *kinds, *(word for word, of in sorted(_GENERAL.items()) if self.word in of.split()))

    @property
    def related(self) -> frozenset[str]:
        """Stems of the words that may say the same in another form."""
        return frozenset(map(stem, (*self.inverses, *self.said_by)))


def _read_roles() -> dict[str, Role]:
    inverses: dict[str, list[str]] = {}
    said_by: dict[str, list[str]] = {}
    for line in _PAIRS.strip().splitlines():
        left, right = (side.split() for side in line.split(" : "))
        for these, others in ((left, right), (right, left)):
            for word in these:
                inverses.setdefault(word, []).extend(others)
    for line in _SAID_BY_TEXT.strip().splitlines():
        words, others = (side.split() for side in line.split(" : "))
        for word in words:
            said_by.setdefault(word, []).extend(others)
    return {
        stem(word): Role(
            word, _GENDERS.get(word, ""), tuple(dict.fromkeys(inverses.get(word, ()))), tuple(said_by.get(word, ()))
        )
        for word in sorted({*inverses, *said_by})
    }


_ROLES = _read_roles()


def find_role(word_stem: str) -> Role | None:
    """Return the role that a stem names; None if it names none with a known direction."""
    return _ROLES.get(word_stem)
