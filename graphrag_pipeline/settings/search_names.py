"""Names of search methods, text unit selection strategies, baselines and samples, for settings, commands, registries.

Add a method: its steps in `query/methods/steps.py`, its section in the settings, and a row here. Add a strategy: a
function in `query/selection/strategies.py` and its name here. Add a baseline of evaluations: a ranker or a step in
`evaluation/conditions.py`, and a row here. Keep out: anything that takes time to import; the command
line lists these names before it knows the command.
"""

from __future__ import annotations

from typing import Literal

SEARCH_METHODS = {
    "local": "entities and the records around them",
    "global": "community reports",
    "basic": "text units",
    "drift": "reports, then follow-up questions",
    "lazy": "relevance tests, no reports",
    "auto": "chooses one and says why",
}
"""Method -> what it reads, in the order of lists for people."""
CHOOSABLE_METHODS = tuple(name for name in SEARCH_METHODS if name != "auto")
"""Methods that `auto` may pick."""
STRATEGIES = (
    "balanced",
    "graph",
    "depth_first",
    "per_entity_cap",
    "round_robin",
    "weighted_quota",
    "minimum_guarantee",
)
"""Text unit selection strategies of local search, in the order of lists for people."""
BASIC_SHARES = {"balanced": 0.45, "graph": 1.0}
"""Share of the text unit budget that basic search may take, by default, of the strategies that give it any.

With `balanced` its four aims have most of the seats: at 0.45 no figure of the bench `judged` falls, at 0.4 one does.
"""
BASELINES = {
    "bm25": "text units found by full text alone",
    "SS": "text units found by vectors alone (also `vector`)",
    "TS": "map and reduce over all source text",
}
"""Ways to answer that only an evaluation has -> what they read. SS and TS are names of Edge et al. 2024."""
SampleMethod = Literal["random", "bucket", "centroid", "clusters"]
"""Ways to choose the text units from which `tune` writes prompts."""
PAPER_LEVELS = tuple(range(4))
"""C0 to C3 of Edge et al. 2024: global search over the report frontier at this level of communities."""
VARIANTS = {"local": ("strategy", STRATEGIES), "global": ("selection", ("dynamic", "static"))}
"""Method -> the option that a bare word behind its name sets, and the words."""


def describe_conditions() -> dict[str, str]:
    """Return the names that an evaluation takes for ways to answer, with what each answers with."""
    found: dict[str, str] = {}
    for method, what in SEARCH_METHODS.items():
        found[method] = f"{method} search: {what}"
        option, words = VARIANTS.get(method, ("", ()))
        found |= {f"{method}:{word}": f"{method} search with `{option}: {word}`" for word in words}
    found |= {f"C{level}": f"global search over the report frontier at level {level}" for level in PAPER_LEVELS}
    return found | BASELINES


def list_conditions() -> str:
    """Return the same names for help texts and messages, without their variants."""
    names = [name for name in describe_conditions() if ":" not in name]
    return ", ".join("vector (or SS)" if name == "SS" else name for name in names)


WITHOUT_EXCERPTS = ("depth_first",)
"""Strategies that take no excerpts by default."""


def describe_methods() -> str:
    """Return the methods with what each reads, in one sentence for help texts."""
    *others, last = [f"{name} ({what})" for name, what in SEARCH_METHODS.items()]
    return f"Search method: {', '.join(others)}, or {last}."
