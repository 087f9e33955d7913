"""The role whose holder a question asks for: "Who is Anna's sister?", "Who is the chief executive of Harrow and Pike?".

Forms: "Who is O's R?", "Who is the R of O?", "Who is the R?", "What is the name of O's R?", and by a verb "Whom did O
marry?", with the role R and its owner O. "Who owns O?" asks for the holder of a role, too: texts say it by "O's owner,
N". English alone. Keep out: finding the holder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphrag_pipeline.query.question import content_words, is_english, is_past_form, stem
from graphrag_pipeline.query.understanding.roles import GROUPS, Role, find_role
from graphrag_pipeline.query.word_families import offices_like
from graphrag_pipeline.text.late_patterns import late_re

_IS = (
    r"\W*(?:who(?:\s+(?:(?P<now>is|are)|was|were)|['\u2019]s)|"
    r"(?P<named>what(?:\s+(?:is|was|are|were)|['\u2019]s)\s+the\s+names?\s+of))\s+"
)
_WORDS = r"[a-z][\w-]*(?:\s+[a-z][\w-]*){0,2}"
_FORMS = tuple(
    late_re(rf"{form}\s*[?.!]*\s*\Z", re.IGNORECASE)
    for form in (
        rf"{_IS}(?P<owner>.+?)(?:['\u2019]s|s['\u2019])\s+(?P<role>{_WORDS})",
        rf"{_IS}(?:the\s+|an?\s+)?(?P<role>{_WORDS}?)\s+(?:of|to|at|for|on)\s+(?P<owner>.+?)(?:['\u2019]s?)?",
        rf"{_IS}the\s+(?P<role>{_WORDS})",
        r"\W*whom?\s+did\s+(?P<owner>.+?)\s+(?P<role>marry)",
        r"\W*who\s+(?P<role>married)\s+(?P<owner>.+?)",
        r"\W*to\s+whom\s+(?:is|was)\s+(?P<owner>.+?)\s+(?P<role>married|engaged|apprenticed)",
    )
)
_OFFICES = frozenset(
    """chair chairman chairwoman chairperson president secretary treasurer director manager mayor minister captain
    editor governor chancellor coroner principal headteacher bishop vicar clerk engineer librarian conductor curator
    inspector superintendent commissioner commander""".split()  # noqa: SIM905
)
"""Offices that questions write with a capital, too: "Who is the Chair of the society?"."""
_PRESENT = frozenset(("new", "current", "present"))
"""Words before an office that say only that it is held now."""
GROUP_STEMS = frozenset(map(stem, GROUPS))
"""Stems of the nouns for a body or a place that a text has named before."""
_ROLE_OF_VERB = {"marry": "spouse", "married": "spouse", "engaged": "fianc\u00e9", "apprenticed": "master"}
_HOLDERS = {
    "owns": "owner",
    "owned": "owner",
    "chairs": "chair",
    "chaired": "chair",
    "manages": "manager",
    "managed": "manager",
    "directs": "director",
    "edits": "editor",
    "edited": "editor",
    "conducts": "conductor",
    "coaches": "coach",
    "captains": "captain",
    "founded": "founder",
    "established": "founder",
    "invented": "inventor",
    "discovered": "discoverer",
    "designed": "designer",
    "composed": "composer",
    "wrote": "author",
    "leads": "leader",
    "led": "leader",
    "heads": "head",
    "headed": "head",
}
"""Verbs of a question and the role of who does it."""
_BY_VERB = late_re(rf"\W*who\s+(?P<verb>{'|'.join(_HOLDERS)})\s+(?P<owner>[^,;]+?)\s*[?.!]*\s*\Z", re.IGNORECASE)


@dataclass(frozen=True)
class AskedRole:
    """A role and its owner.

    Attributes:
        head: the role in the singular, in small letters: "director".
        modifiers: the words before it: {"managing"}.
        owner: stems of the words of its owner; empty if the question names none.
        is_now: whether it asks for the present holder of an office.
        is_person: whether the holder must be a person; the holder of "the name of" may be anything.
        may_be_body: whether the holder may also be an organization: "Who owns the mill?".
    """

    head: str
    modifiers: frozenset[str]
    owner: frozenset[str]
    is_now: bool
    is_person: bool
    may_be_body: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The role in the words by which texts say it of its holder: "Chair" for a chairman."""
        return self.known.same if self.known else offices_like(self.head)

    @property
    def known(self) -> Role | None:
        """The role with its direction, if a person has it to a person.

        "The harbour master" and "the clerk of the partnership" are offices.
        """
        role = find_role(stem(self.head)) if self.owner - GROUP_STEMS else None
        return role if role and role.inverses else None


def read_asked_role(clause: str) -> AskedRole | None:
    """Return the role whose holder a clause asks for; None if it asks for none."""
    found = next((match for form in _FORMS if (match := form.match(clause))), None)
    if found is None or not is_english(clause):
        return None
    groups = found.groupdict()
    *modifiers, head = groups["role"].split()
    head = head.lower() if head.lower() in _OFFICES else head
    owner = content_words(groups.get("owner") or "")
    is_verb = is_past_form(head) and head not in _ROLE_OF_VERB  # "Who was cleared of theft?"
    if head != head.lower() or ("owner" in groups and not owner) or is_verb:
        return None
    head = _ROLE_OF_VERB.get(head, head)
    role = find_role(stem(head))
    is_now = not (role and role.inverses) and bool(groups.get("now"))
    kept = frozenset(word.lower() for word in modifiers) - _PRESENT
    is_now = is_now or len(kept) < len(modifiers)
    return AskedRole(role.word if role else head, kept, owner, is_now, not groups.get("named"))


def read_role_of_verb(clause: str) -> AskedRole | None:
    """Return the role that the subject of a clause's verb has: the owner for "Who owns the mill?"; None for others."""
    found = _BY_VERB.match(clause) if is_english(clause) else None
    owner = content_words(found["owner"]) if found else frozenset()
    if found is None or not owner:
        return None
    verb = found["verb"].lower()
    return AskedRole(_HOLDERS[verb], frozenset(), owner, verb.endswith("s"), True, verb.startswith("own"))
