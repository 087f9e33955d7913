"""Words of one family ("direct", "director", "direction"), words that say the same, and words that need no answer.

A family is the stem without its endings of derivation. "main" and "important" only weigh what they stand beside, and
"involve" and "kind" only link it: no text has to say them.

Vectors put "defeat" no nearer to "beat" than "sell" to "buy", so words that say the same are a table. The words before
a colon mean the same of the same things: "Ida beat Anna" says whom Ida defeated. Each of them is also said by the words
behind the colon: nouns ("owner") and words for the other side ("Anna lost to Ida"). These say nothing in the other
direction, since a question for the owner does not ask who has a thing. A line holds what news, minutes, guidelines and
stories use for each other. Add a word here only if a sentence with it answers a question with its neighbour.
English alone. Keep out: vectors of words, roles of persons (`understanding/roles.py`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.late_patterns import late_re

_ENDINGS = """
ership ation ition ment ance ence ancy ency ant ent ery or er ist ship ion ness ity ive ure age al ly e
""".split()  # noqa: SIM905
MIN_BASE = 4
"""Letters of a family."""
_CHAIRS = "chairman chairwoman chairperson : chair"
"""An office that each word names."""
_SAME_TEXT = f"""
beat defeat overcome outplay : win victory lose winner against
win : winner victory champion triumph beat defeat award appoint
lose : loser defeat beaten concede
award bestow : prize medal receive honour win
receive get obtain : give award win
buy purchase acquire : buyer purchaser acquisition takeover sell transfer
sell : sale seller auction buy purchase acquire
own possess : owner belong property ownership proprietor possession
head lead run direct chair manage govern preside command : leader head director chair chairman chairwoman
    chairperson president manager chief boss commander governor leadership presidency
die perish : death dead kill fatal victim drown
kill murder slay : killer murderer death dead die victim fatal
born : birth birthplace native
marry married wed : wedding marriage wife husband spouse widow
start begin open launch commence : opening beginning inauguration founding
end finish close conclude cease expire : ending closure over
stop halt : end block prevent suspend ban delay close
shut close : closure
found establish : founder foundation start create launch
build construct erect : builder construction launch
make produce manufacture create : maker producer manufacturer production build cast
write pen : author writer
invent devise : inventor invention design
design : designer architect plan
discover find detect spot unearth : discovery finder
steal rob raid : thief thieves theft robbery robber raider burglar burglary loot
lose miss : loss
repair fix restore renovate : restoration restorer renovation
hurt injure wound : injury injuries casualty hospital struck
rescue save : rescuer rescue free survivor pull
free release : freedom acquit pull rescue
arrest detain capture : custody prison jail
sentence convict jail imprison : prison conviction
accuse charge sue : accusation complaint lawsuit indict
resign quit : resignation retire leave step
dismiss sack : dismissal
appoint name choose elect select : appointment election nominate vote
replace succeed follow : successor replacement predecessor
vote : ballot election elect poll voter
announce declare reveal disclose : announcement statement
promise pledge vow : commit
demand request urge : call ask appeal
reject refuse decline deny : rejection refusal veto
approve authorise authorize accept adopt : approval agree resolve
allow permit let license licence : permission exception exempt
forbid ban prohibit outlaw : prohibition
advise recommend : advice recommendation
warn : warning
{_CHAIRS}
pay : cost fee price salary wage fund finance
cost : price fee worth expense pay charge
fund finance sponsor : donor pay
donate give : donation donor gift
earn : wage salary income
live reside dwell lodge : home residence resident address dwelling inhabitant
study : student degree graduate
teach : teacher professor lecturer
teach train instruct : teacher trainer instructor
work labour : employ employee worker staff
come attend visit : visitor audience attendance attract draw drew
open : ribbon inaugurate
travel journey : trip voyage flight
arrive come reach : arrival
leave depart : departure flee
carry carried transport deliver bring : delivery cargo
send dispatch : deliver
store keep : storage
destroy wreck ruin devastate : destruction burn
damage harm : destruction destroy
cause trigger : because due blame start begin lead
help assist support : aid assistance
fight combat oppose : opponent against battle control
protect guard conserve preserve : protection
threaten endanger : danger threat risk
treat cure heal : treatment therapy
increase rise grow raise climb : growth
decrease fall drop decline shrink reduce lower cut : reduction
need require : necessary
join merge unite : member merger union
criticise criticize condemn : criticism critic
crash collide : collision accident
sink capsize : sunk
burn : fire blaze flame
collapse fall
drive steer : driver
operate run : operator
coach train : coach trainer
load carry : cargo freight
member : belong
weigh : weight mass
late : delay
prison jail : custody sentence
perform sing : singer performance
paint draw : painter painting
compose : composer
publish print issue release : publisher publication
investigate examine inspect probe : investigation inquiry investigator inspector inspection
hide conceal : hidden
cancel : cancellation
postpone delay
mediate arbitrate : mediator arbitrator
lawyer attorney solicitor barrister advocate counsel : defender defence
acquit clear : acquittal innocent
theft robbery burglary : steal rob raid thief
fine penalty : pay punish
loss deficit : lose lost
captain skipper
student pupil
prize award medal trophy cup : honour honor title
vaccine vaccination jab inoculation
speed fast : quick slow
doctor physician : surgeon
lesson class
meet : encounter join meeting
contract order commission : tender
court tribunal : judge judges
dispute conflict quarrel row : strike complaint
illness disease sickness : infection
drug medicine medication : tablet
car vehicle automobile
ship vessel boat : ferry
plane aircraft aeroplane airplane jet
salary wage pay
danger risk hazard : threat
effect : affect reaction
task duty : responsible
parasite : mite tick louse lice flea worm
money cash : pound dollar euro
"""
_CLOSED_TEXT = """
born die perish drown marry married wed divorce bury buried baptise baptize murder kill paint compose write invent
sculpt carve cast forge crown ordain canonise canonize weigh measure
"""
"""Verbs that texts seldom replace by a phrase, as they do "resign" by "step down" and "cause" by "lead to"."""
_ACT = late_re(r"(?:[ai]tion|sion|ment|al|ing)\Z")
"""Endings of nouns for what a verb says: "resignation"."""
_ADVERB_ENDINGS = ("ally", "ully", "ely", "tly", "dly", "sly", "rly", "ngly")
MIN_ADVERB = 5
"""Letters that an adverb has more than: "early" and "rally" are words of their own."""
_OWN_FAMILIES = frozenset(
    """university hospital hospitality personality community authority department apartment minority majority general
    capital station mission organ moment parliament""".split()  # noqa: SIM905
)
"""Words that share a beginning with others by chance: a university is not universal, an authority no author."""
_LITTLE_TEXT = """
reason person people someone side work purpose aim goal result outcome effect consequence advantage benefit
disadvantage method problem function feature meaning difference detail information fact
main major principal primary key important importance significant essential central top various certain common typical
general overall frequent often usual different several other
involve include concern mention relate regard refer contain consist exist occur
event thing kind sort type part example case way
"""
_CLOSED = frozenset(map(stem, _CLOSED_TEXT.split()))
_LITTLE = frozenset(map(stem, _LITTLE_TEXT.split()))


def _read_same() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Return stem -> stems that mean the same, and stem -> families that say it in any form."""
    same: dict[str, set[str]] = {}
    said: dict[str, set[str]] = {}
    for line in re.sub(r"\n\s+", " ", _SAME_TEXT.strip()).splitlines():
        left, _, right = line.partition(" : ")
        meaning = set(map(stem, left.split()))
        for word in meaning:
            same.setdefault(word, set()).update(meaning)
            said.setdefault(word, set()).update(map(family_of, [*left.split(), *right.split()]))
    return {k: frozenset(v) for k, v in same.items()}, {k: frozenset(v) for k, v in said.items()}


def is_said_by_itself(word: str) -> bool:
    """Return whether texts state what a verb asks with it or its neighbours alone: "born", "die", "paint"."""
    return stem(word) in _CLOSED


def is_adverb(word: str) -> bool:
    """Return whether a word in small letters is an adverb of manner or time by its ending: "originally"."""
    return len(word) > MIN_ADVERB and word.endswith(_ADVERB_ENDINGS)


def says_little(word_stem: str) -> bool:
    """Return whether the word of a stem only weighs or links the words of a question: "main", "kind", "involve"."""
    return word_stem in _LITTLE


def means_same(word: str) -> frozenset[str]:
    """Return the stems of the words that mean the same of the same things, its own with them."""
    return _SAME.get(stem(word), frozenset()) | {stem(word)}


def offices_like(word: str) -> tuple[str, ...]:
    """Return the words for the office that a word in small letters names: each word for a chairman, else itself."""
    chairs = tuple(_CHAIRS.replace(":", "").split())
    return chairs if word in chairs else (word,)


def said_by(word: str) -> frozenset[str]:
    """Return the families of the words by which a text may say a word, its own with them."""
    family = family_of(word)
    base = family if _ACT.search(word) and family in _SAID_BY else stem(word)
    return _SAID_BY.get(base, frozenset()) | {family}


@functools.lru_cache(maxsize=65_536)
def family_of(word: str) -> str:
    """Return what the words of a family share: "presid" of "president" and "presidency"."""
    base = stem(word)
    if word in _OWN_FAMILIES or base in _OWN_FAMILIES:
        return word if word in _OWN_FAMILIES else base
    for _ in range(2):
        ending = next((end for end in _ENDINGS if base.endswith(end) and len(base) - len(end) >= _least(end)), "")
        base = base.removesuffix(ending) if ending else base
    return base


def families_in(texts: Iterable[str]) -> set[str]:
    """Return the families of all words of some texts."""
    return {family_of(word) for text in texts for word in words_of(text)}


def _least(ending: str) -> int:
    return MIN_BASE if len(ending) > 1 else MIN_BASE + 2


_SAME, _SAID_BY = _read_same()
