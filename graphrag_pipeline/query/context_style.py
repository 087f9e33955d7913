"""The style of a context as a model reads it: optional columns, delimiter, names of columns and headings.

A result keeps what differs from the defaults in `selection`, so that it can be written out again. Keep out: writing
(`rendering.py`, `strict_tables.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Self

from graphrag_pipeline.citations import KINDS
from graphrag_pipeline.settings.settings import LocalSearchSettings

SHOWN_COLUMNS = ("entity_rank", "relationship_weight")
"""Optional columns of the tables that a model sees by default."""
_DEFAULTS = LocalSearchSettings()
CONTEXT_NAMES: Mapping[str, str] = MappingProxyType(_DEFAULTS.context_names)


@dataclass(frozen=True)
class ContextStyle:
    """How the tables of a context are written.

    Attributes:
        shown_columns: optional columns: `entity_rank`, `community_rank`, `relationship_weight`.
        context_names: heading of each part.
        is_strict: whether the tables are those of Microsoft GraphRAG.
        use_community_summary: whether reports are summaries, which strict tables name in the heading.
    """

    shown_columns: tuple[str, ...] = SHOWN_COLUMNS
    column_delimiter: str = _DEFAULTS.column_delimiter
    rank_description: str = _DEFAULTS.rank_description
    context_names: Mapping[str, str] = field(default_factory=lambda: CONTEXT_NAMES)
    is_strict: bool = False
    use_community_summary: bool = False

    @classmethod
    def of_settings(cls, settings: LocalSearchSettings) -> Self:
        """Return the style that the settings name."""
        return cls(
            settings.shown_columns,
            settings.column_delimiter,
            settings.rank_description,
            settings.context_names,
            settings.is_strict,
            settings.use_community_summary,
        )

    @classmethod
    def of_selection(cls, selection: Mapping[str, Any]) -> Self:
        """Return the style that `to_selection` wrote into the account of a search."""
        named = {f.name: selection[f.name] for f in fields(cls) if f.name in selection}
        if "shown_columns" in named:
            named["shown_columns"] = tuple(named["shown_columns"])
        return cls(**named, is_strict=selection.get("packing") == "strict")

    def to_selection(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain values."""
        found: dict[str, Any] = {}
        if set(self.shown_columns) != set(SHOWN_COLUMNS):
            found["shown_columns"] = list(self.shown_columns)
        if self.column_delimiter != _DEFAULTS.column_delimiter:
            found["column_delimiter"] = self.column_delimiter
        if self.rank_description != _DEFAULTS.rank_description:
            found["rank_description"] = self.rank_description
        if self.context_names != CONTEXT_NAMES:
            found["context_names"] = dict(self.context_names)
        if self.is_strict and self.use_community_summary:
            found["use_community_summary"] = True
        return found | ({"packing": "strict"} if self.is_strict else {})

    def shows(self, column: str) -> bool:
        """Return whether an optional column is shown."""
        return column in self.shown_columns

    @property
    def kinds_of_names(self) -> dict[str, str]:
        """Changed heading, in lower case -> kind in a citation."""
        kinds = zip(("entities", "relationships", "claims", "reports", "text_units"), KINDS, strict=True)
        changed = {part: name for part, name in self.context_names.items() if name != CONTEXT_NAMES[part]}
        return {changed[part].casefold(): kind for part, kind in kinds if part in changed}

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the text that differ from the defaults."""
        changed = [name for part, name in self.context_names.items() if name != CONTEXT_NAMES[part]]
        return (*changed, *([self.rank_description] if self.rank_description != _DEFAULTS.rank_description else []))
