"""Generated news-like articles: the same for the same seed, each about 4,600 characters.

Names follow the law of real news (Yule and Simon's process). The probability of a new name falls as the cast grows.
Otherwise an earlier name returns, in proportion to its frequency. So names are reused with a long tail, and a corpus
four times as large has about three times as many names. The first n articles of a larger
corpus are the articles of a smaller one. Keep out: downloads, clocks, anything not seeded.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

N_CHARACTERS = 4_600
"""About the length of an article."""
_SHARED_NAMES = 8
"""In a corpus of topics, one new name in this many comes from the cast that all topics share."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))


_GIVEN = _words(
    """Ada Adam Agnes Ahmed Aisha Albert Alice Amara Amir Ana Anders Andre Anita Anna Arjun Arthur Astrid Aurora
    Beatrice Benjamin Bianca Boris Brenda Bruno Camille Carla Carlos Cecilia Charles Chen Clara Claude Dalia Daniel
    Daria David Deepa Diana Diego Dmitri Dolores Edith Edmund Elena Elias Emeka Emil Emma Enrique Erik Esther Eva
    Fatima Felix Fiona Florence Frank Gabriel George Gloria Grace Greta Hana Harold Hassan Hector Helen Henrik
    Hiroshi Hugo Ibrahim Ida Ines Ingrid Irene Isaac Ivan Jamal James Jasmine Johan Jorge Josephine Julia Kamal Karen
    Karl Keiko Kwame Laila Lars Laura Leon Lidia Lucas Luisa Magnus Malik Marcus Margaret Maria Martin Maya Mehmet
    Miguel Mina Mohan Nadia Naomi Natasha Nikolai Nina Noah Nora Olga Oliver Omar Oscar Pablo Patricia Paul Pedro
    Petra Philip Priya Rafael Rahul Rebecca Ricardo Rosa Ruth Samuel Sandra Sara Sergei Simon Sofia Stefan Susan Sven
    Tariq Teresa Theo Thomas Tomas Ursula Valentina Vera Victor Walter Wendy Yara Yusuf Yuki Zainab Zoe"""
)
_FIRST_HALVES = _words(
    """Ab Al An Ash Bar Beck Ber Black Bran Brook Cal Car Clay Cor Cran Dal Dar Dun East Ell Fair Far Fen Gar Gil Gran
    Hal Ham Har Hart Haw Hen Hol Kel Ken Kir Lam Lang Lin Lock Mar May Mer Mil Mon Nor Oak Pen Ran Red Ros San Sel
    Sher Stan Sut Tal Thorn Tor Val Ver Wal War Wel West Whit Win Wood Yar"""
)
_NAME_ENDS = _words(
    """bert berg brook by croft dale den dorf er field ford gate grove ham hart house hurst ing land ley low man mann
    mark mere moor more over ridge rose sen shaw son stein stock stone ter ton vale vik ville wall ward well wick win
    worth wright"""
)
_PLACE_ENDS = _words(
    """bridge brook burg bury by chester city cliff dale ester field ford fort gate haven heim holm hurst lake land mere
    minster moor mouth pool port sea stad stead ton vale ville water wick wood worth"""
)
_REGIONS = _words("Province Valley Coast Bay Island County Hills District Harbour River")
_SECTORS = _words(
    """Energy Steel Foods Airlines Motors Pharma Media Shipping Robotics Textiles Insurance Logistics Telecom Software
    Mining Water Rail Aerospace Chemicals Timber"""
)
_COMPANY_ENDS = _phrases("Group; Holdings; Inc.; Ltd.; Corporation; Partners; Bank; Company; Industries")
_INSTITUTIONS = _phrases(
    """University of {place}; {place} City Council; {place} Police Department; {place} General Hospital; {place} Chamber
    of Commerce; Port of {place}; {place} Institute of Technology; {place} Museum of Art; {place} Court of Appeal;
    {place} Football Club; {place} Tribune; {place} Teachers' Union"""
)
_BODIES = _phrases(
    """Ministry of {thing}; Department of {thing}; {thing} Commission; National {thing} Agency; Institute for {thing};
    Centre for {thing} Policy; {thing} Workers' Union; Federal {thing} Authority"""
)
_THINGS = _words(
    """Finance Health Transport Agriculture Trade Justice Labour Education Housing Fisheries Climate Research Defence
    Statistics Aviation Culture Forestry Competition Migration Space"""
)
_EVENTS = _phrases(
    """{place} Summit; {place} Accord; {thing} Reform Act; {place} Film Festival; {place} Open; Treaty of {place};
    {place} Marathon; Operation {half}gate; {thing} Forum; {place} Biennale"""
)
_ROLES = _phrases(
    """minister; chief executive; spokeswoman; spokesman; professor of economics; mayor; union leader; chief scientist;
    senator; lawyer; detective; head coach; novelist; opposition leader; analyst; surgeon; engineer; finance
    director; judge; ambassador; historian; campaigner; general secretary; prosecutor; farmer; architect; chair of
    the board; biologist; former minister; investor"""
)
_MONTHS = _words("January February March April May June July August September October November December")
_WEEKDAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
TOPICS = _phrases(
    """flood defences; a merger; wheat prices; a rail strike; vaccine trials; a harbour tunnel; school meals; data
    protection; a corruption inquiry; offshore wind farms; a housing shortage; the transfer window; a stolen
    painting; river pollution; battery plants; a border dispute; pension rules; a satellite launch; street crime; the
    election recount; water rights; a bank rescue; nurses' pay; a forest fire; airport noise; rare metals; a doping
    case; land reform; the central library; drug prices; a ferry accident; fishing quotas; the film prize; a hospital
    closure; tax evasion; self-driving buses; a coal mine; the census; organic farming; a football stadium"""
)
_ADJECTIVES = _words(
    """sweeping modest controversial long-awaited costly popular secret delayed independent unusual historic
    far-reaching temporary ambitious draft revised hasty technical public emergency regional binding voluntary
    disputed detailed"""
)
_NOUNS = _words(
    """plan report settlement agreement inquiry budget proposal contract review ruling campaign forecast survey
    programme audit deal petition scheme study appeal licence ban guarantee loan timetable"""
)
_VERBS = _words(
    """announced rejected welcomed criticised signed defended postponed approved questioned published withdrew suspended
    praised challenged prepared leaked explained denounced renewed abandoned expanded examined halted drafted
    negotiated"""
)
_CONSEQUENCES = _phrases(
    """costs would rise before the winter; hundreds of jobs depended on it; nobody had asked the residents; the money
    was already spent; the figures could not be trusted; prices had fallen for the third month; the courts would have
    the last word; a compromise was within reach; the risks had been known for years; smaller firms would suffer
    most; work could begin in the spring; the old rules no longer applied; the deadline could not be met; the region
    needed new roads; neither side wanted another strike; the results were better than expected; safety had come
    second; the vote would be close; foreign investors were losing patience; the archive held the proof; patients had
    waited too long; the harvest was in danger; tickets had sold out within hours; the technology was not ready; the
    neighbours would follow"""
)
_CAUSES = _phrases(
    """after months of talks; despite warnings from experts; in front of a packed hall; without giving reasons; under
    pressure from creditors; during a visit to the site; in a letter to shareholders; hours before the deadline;
    behind closed doors; at a hastily called press conference; with the backing of both parties; in a televised
    debate; following a complaint by residents; as protests grew louder; on the advice of lawyers; to the surprise of
    colleagues; in spite of heavy rain; for the second time this year; when the market had closed; with a margin of
    only three votes"""
)


@dataclass(frozen=True)
class Article:
    """One made-up article."""

    name: str  # of its file
    title: str
    text: str


class _Cast:
    """Names of one kind, drawn by Yule and Simon's process: in proportion to their frequency so far."""

    def __init__(self, source: random.Random, make: Callable[[], str], first_share: float) -> None:
        self._source = source
        self._make = make
        self._share = first_share
        self._drawn: list[str] = []

    def draw(self) -> str:
        """Return a name; new with a probability that falls from 1 towards a quarter of the first share."""
        n = len(self._drawn)
        share = self._share * (0.25 + 0.75 / (1 + n / 20_000))
        name = self._make() if not n or self._source.random() < share else self._source.choice(self._drawn)
        self._drawn.append(name)
        return name


class _World:
    """The cast of all articles and the sentences about it."""

    def __init__(self, seed: int | str, common: _World | None = None, topics: Sequence[str] = TOPICS) -> None:
        self.source = source = random.Random(seed)
        self.topics = topics
        self.places = common.places if common else _Cast(source, self._make_place, 0.05)
        make_person, make_organization = self._make_person, self._make_organization
        if common:
            make_person = self._often(make_person, common.people)
            make_organization = self._often(make_organization, common.organizations)
        self.people = _Cast(source, make_person, 0.6)
        self.organizations = _Cast(source, make_organization, 0.5)
        self.events = _Cast(source, self._make_event, 0.3)
        self._role_of: dict[str, str] = {}

    def _often(self, make: Callable[[], str], shared: _Cast) -> Callable[[], str]:
        """Return a new name, or sometimes a shared one."""
        return lambda: shared.draw() if self.source.randrange(_SHARED_NAMES) == 0 else make()

    def pick(self, values: Sequence[str]) -> str:
        return self.source.choice(values)

    def role(self, person: str) -> str:
        """Return the action of a person, the same in every article."""
        return self._role_of.setdefault(person, self.pick(_ROLES))

    def date(self) -> str:
        return f"{self.source.randint(1, 28)} {self.pick(_MONTHS)} {self.source.randint(2015, 2024)}"

    def _make_person(self) -> str:
        middle = f" {self.pick(string.ascii_uppercase)}." if self.source.random() < 0.1 else ""
        return f"{self.pick(_GIVEN)}{middle} {self.pick(_FIRST_HALVES)}{self.pick(_NAME_ENDS)}"

    def _make_place(self) -> str:
        place = self.pick(_FIRST_HALVES) + self.pick(_PLACE_ENDS)
        return f"{place} {self.pick(_REGIONS)}" if self.source.random() < 0.3 else place

    def _make_organization(self) -> str:
        kind = self.source.random()
        if kind < 0.4:
            name = self.pick(_FIRST_HALVES) + self.pick(_NAME_ENDS)
            return f"{name} {self.pick(_SECTORS)} {self.pick(_COMPANY_ENDS)}"
        pattern = self.pick(_INSTITUTIONS if kind < 0.8 else _BODIES)
        return pattern.format(place=self.places.draw(), thing=self.pick(_THINGS))

    def _make_event(self) -> str:
        pattern = self.pick(_EVENTS)
        return pattern.format(place=self.places.draw(), thing=self.pick(_THINGS), half=self.pick(_FIRST_HALVES)) + (
            f" {self.source.randint(1990, 2024)}" if self.source.random() < 0.3 else ""
        )


def iterate_articles(n: int, seed: int = 0) -> Iterator[Article]:
    """Return the first n articles of the corpus of this seed."""
    world = _World(seed)
    for number in range(n):
        yield _write_article(world, number)


def write_articles(folder: Path, n: int, seed: int = 0) -> int:
    """Write n articles as text files of `folder`; returns their characters."""
    folder.mkdir(parents=True, exist_ok=True)
    n_characters = 0
    for article in iterate_articles(n, seed):
        content = f"{article.title}\n\n{article.text}\n"
        (folder / article.name).write_text(content, encoding="utf-8")
        n_characters += len(content)
    return n_characters


def iterate_topical_articles(n: int, seed: int = 0) -> Iterator[tuple[str, Article]]:
    """Yield the first n articles of a corpus, with topics in turn; each topic has its cast.

    All topics share the places. One name in `_SHARED_NAMES` comes from the shared cast.
    """
    common = _World(seed)
    worlds = [_World(f"{seed} {topic}", common, (topic,)) for topic in TOPICS]
    for number in range(n):
        world = worlds[number % len(TOPICS)]
        yield world.topics[0], _write_article(world, number)


@dataclass(frozen=True)
class _Scene:
    """The people and things of one article."""

    topic: str
    people: list[str]
    organizations: list[str]
    places: list[str]
    event: str


def _write_article(world: _World, number: int) -> Article:
    source = world.source
    scene = _Scene(
        world.pick(world.topics),
        _several(world.people, source.randint(6, 10)),
        _several(world.organizations, source.randint(4, 8)),
        _several(world.places, source.randint(2, 4)),
        world.events.draw(),
    )
    title = f"{scene.organizations[0]} {world.pick(_VERBS)} {world.pick(_NOUNS)} on {scene.topic}"
    patterns: list[str] = []
    paragraphs = [_opening(world, scene)]
    while sum(map(len, paragraphs)) < N_CHARACTERS - 280:
        if len(patterns) < 5:  # all once, in another order each time
            patterns += source.sample(_PATTERNS, len(_PATTERNS))
        paragraphs.append(" ".join(_sentence(world, scene, patterns.pop(0)) for _ in range(source.randint(2, 5))))
    return Article(f"article_{number:05d}.txt", title, "\n\n".join(paragraphs))


def _several(cast: _Cast, n: int) -> list[str]:
    return list(dict.fromkeys(cast.draw() for _ in range(n)))


def _opening(world: _World, scene: _Scene) -> str:
    person = scene.people[0]
    return (
        f"{scene.places[0].upper()} - {person}, {world.role(person)} of {scene.organizations[0]}, "
        f"{world.pick(_VERBS)} a {world.pick(_ADJECTIVES)} {world.pick(_NOUNS)} on {scene.topic} on "
        f"{world.pick(_WEEKDAYS)}, {world.pick(_CAUSES)}."
    )


def _sentence(world: _World, scene: _Scene, pattern: str) -> str:
    person, other = world.pick(scene.people), world.pick(scene.people)
    return pattern.format(
        person=person,
        surname=person.split()[-1],
        role=world.role(person),
        other=other,
        other_role=world.role(other),
        organization=world.pick(scene.organizations),
        rival=world.pick(scene.organizations),
        place=world.pick(scene.places),
        event=scene.event,
        topic=scene.topic,
        adjective=world.pick(_ADJECTIVES),
        noun=world.pick(_NOUNS),
        second_noun=world.pick(_NOUNS),
        verb=world.pick(_VERBS),
        cause=world.pick(_CAUSES),
        consequence=world.pick(_CONSEQUENCES),
        date=world.date(),
        weekday=world.pick(_WEEKDAYS),
        number=world.source.randint(3, 950),
        year=world.source.randint(1960, 2024),
    )


_PATTERNS = (
    "{person}, the {role}, {verb} the {adjective} {noun} {cause}.",
    "The {noun} was {adjective}, and {surname} said that {consequence}.",
    "{organization} {verb} its {noun} on {topic}, while {rival} prepared a {second_noun} of its own.",
    '"Let me be clear: {consequence}," said {person} of {organization}.',
    "On {date} the {organization} office in {place} {verb} a {adjective} {noun} worth {number} million dollars.",
    "Residents of {place} learned {cause} that {consequence}.",
    "According to {other}, {other_role} at {rival}, {consequence}.",
    "{surname} met {other} in {place} {cause}.",
    "The {event} gave {organization} a chance to present the {noun}, and {person} took it.",
    "About {number} people gathered in {place} on {weekday} because {consequence}.",
    "In {year}, {organization} and {rival} {verb} a {adjective} {noun}, which {person} still regards as a mistake.",
    "Mr. {surname} told reporters that the {noun} had been {adjective} from the start and that {consequence}.",
    "{other} disagreed: the {second_noun} of {year}, she wrote, showed that {consequence}.",
    "Since {date}, {person} has led the {noun} for {organization}, where {number} employees work on {topic}.",
    "It was not the first {adjective} {noun} in {place}; {other} had {verb} one in {year}.",
    "A spokesman for {rival} declined to comment on the {noun}.",
    "{person} and {other} will speak about {topic} at the {event} on {date}.",
    "The {second_noun}, seen by this newspaper, says that {consequence} and that {organization} knew.",
    "Both {organization} and {rival} have their headquarters in {place}, {number} kilometres apart.",
    "If the {noun} fails, {surname} warned, {place} will have to wait until {date}.",
    "{person}, who was born in {place} in {year}, joined {organization} {cause}.",
    "Critics such as {other} call the {noun} {adjective}, yet {consequence}.",
    "They had {verb} the {adjective} {second_noun} {cause}, and {consequence}.",
    "Last {weekday}, {rival} {verb} {number} pages of {topic} records {cause}.",
    "Few expected that {organization} would leave the {event}, but {person} {verb} the {noun} and {consequence}.",
)
