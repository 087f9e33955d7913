"""The names of search methods and of text unit selection strategies: settings, commands and registries read them here.

Add a method: a module of its name in `query/methods/`, its section in the settings, and a row here. Add a strategy: a
function in `query/selection/strategies.py` and its name here. Keep out: anything that takes time to import; the command
line lists these names before it knows the command.
"""

from __future__ import annotations

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
BASIC_SHARES = {"balanced": 2 / 3, "graph": 2 / 3}
"""Share of the text unit budget that basic search may take, by default, of the strategies that give it any."""


def describe_methods() -> str:
    """Return the methods with what each reads, in one sentence for help texts."""
    *others, last = [f"{name} ({what})" for name, what in SEARCH_METHODS.items()]
    return f"Search method: {', '.join(others)}, or {last}."
