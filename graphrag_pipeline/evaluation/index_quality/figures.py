"""One quality figure of an index: its value, its threshold, and the advice if it is beyond the threshold.

`FIGURES` declares every figure. Add one there, with a threshold in `settings/quality.py`, and measure it in a module of
this folder. Keep out: measuring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_pipeline.settings.quality import THRESHOLDS, QualitySettings

MAX_EXAMPLES = 5


@dataclass(frozen=True)
class FigureKind:
    """The declaration of a figure.

    Attributes:
        name: name in tables, JSON and checks; that of its threshold without `min_` or `max_`.
        meaning: a noun phrase.
        advice: what to do if the figure is beyond its threshold.
        listed: what the examples of the figure are; "" if it has none.
    """

    name: str
    meaning: str
    advice: str
    listed: str = ""

    @property
    def option(self) -> str:
        """The name of the threshold in `quality.thresholds`."""
        return next(o for o in (f"min_{self.name}", f"max_{self.name}") if o in THRESHOLDS)

    @property
    def is_minimum(self) -> bool:
        """Whether values below the threshold warn."""
        return self.option.startswith("min_")


@dataclass(frozen=True)
class QualityFigure:
    """A measured figure.

    Attributes:
        value: the figure; None if it was not measured.
        n: number of records that it is about.
        counted: what these records are, such as `text units`.
        note: in words, what the value says, or the reason if it is None.
        examples: records that lower the figure, at most `MAX_EXAMPLES`.
    """

    name: str
    value: float | None
    n: int
    counted: str
    note: str = ""
    examples: tuple[str, ...] = ()

    @property
    def kind(self) -> FigureKind:
        return FIGURES[self.name]

    def is_low(self, settings: QualitySettings) -> bool:
        """Whether the value is beyond its threshold; False without a value or a threshold."""
        threshold = settings.threshold(self.kind.option)
        if self.value is None or threshold is None:
            return False
        return self.value < threshold if self.kind.is_minimum else self.value > threshold

    def render_threshold(self, settings: QualitySettings) -> str:
        """Return the threshold in words; "" if none is set."""
        threshold = settings.threshold(self.kind.option)
        return "" if threshold is None else f"{'at least' if self.kind.is_minimum else 'at most'} {threshold:g}"


def share_of(name: str, n_found: int, n: int, counted: str, examples: Sequence[str] = ()) -> QualityFigure:
    """Return a share as a figure; without a value if there is no record."""
    value = n_found / n if n else None
    note = f"{n_found:,} of {n:,} {counted}" if n else f"the index has no {counted}"
    return QualityFigure(name, value, n, counted, note, tuple(examples[:MAX_EXAMPLES]))


def not_measured(name: str, reason: str) -> QualityFigure:
    """Return a figure without a value."""
    return QualityFigure(name, None, 0, "", reason)


def spread_rows(n_rows: int, n_wanted: int) -> list[int]:
    """Return at most `n_wanted` row numbers, evenly spread over `n_rows` rows, ascending."""
    if n_wanted >= n_rows:
        return list(range(n_rows))
    return [(2 * i + 1) * n_rows // (2 * n_wanted) for i in range(n_wanted)]


FIGURES: dict[str, FigureKind] = {
    kind.name: kind
    for kind in (
        FigureKind(
            "text_unit_coverage",
            "share of text units that yield an entity",
            "Look at the text units without entities and at `graphrag-pipeline status`, which lists failed records. "
            "Try another prompt or model with `graphrag-pipeline try extraction`.",
            "text units without an entity",
        ),
        FigureKind(
            "undescribed_entities",
            "share of entities without a description",
            "Local search matches entities by descriptions. A model that leaves them out may need the default prompt, "
            "a larger `parameters.max_tokens`, or another model.",
            "entities without a description",
        ),
        FigureKind(
            "singletons",
            "share of entities without a relationship",
            "A graph search cannot leave these entities. Raise `extraction.max_gleanings`, or tune "
            "`prompts/extract_graph.txt` so that relationships are extracted, too.",
            "entities without a relationship",
        ),
        FigureKind(
            "type_entropy",
            "Shannon entropy of the entity types, in bits",
            "Almost all entities have one type. Name the types of your corpus in `extraction.entity_types`.",
        ),
        FigureKind(
            "largest_component",
            "share of entities in the largest connected component",
            "The graph falls into pieces that no search crosses. Check singletons first, then whether names of one "
            "thing are merged (`graphrag-pipeline merges`).",
        ),
        FigureKind(
            "claims_per_text_unit",
            "claims a text unit",
            "Describe the claims that your corpus makes in `extraction.claim_description`, or switch claims off.",
        ),
        FigureKind(
            "duplicates_by_name",
            "share of entities whose name differs from another one only in spelling, articles or word order",
            "Merge them in `entity_overrides.csv`, set `resolution.rules` to true, or set `resolution.min_similarity`.",
            "names that may be one",
        ),
        FigureKind(
            "duplicates_by_vector",
            "share of compared entities with another entity of their type at almost the same vector",
            "Look at the pairs. If they are one thing, merge them in `entity_overrides.csv` or set "
            "`resolution.min_similarity`.",
            "pairs that may be one, with their cosine",
        ),
        FigureKind(
            "cited_findings",
            "share of findings of community reports with a citation of an existing record",
            "Statements without a citation cannot be traced. Use the default `prompts/community_report.txt`, another "
            "model for `reports`, or `reports.engine: embedded`, which quotes and cites.",
            "findings without a valid citation",
        ),
        FigureKind(
            "valid_citations",
            "share of records cited by community reports that exist",
            "The model invents record numbers. Use another model for `reports`, or `reports.engine: embedded`.",
            "citations of records that do not exist",
        ),
        FigureKind(
            "placeholders",
            "share of records whose text repeats an example of a prompt or is an empty template",
            "The model copies the prompt. Use a larger model for this stage, or `engine: embedded`.",
            "records with a copied or an empty text",
        ),
        FigureKind(
            "engine_ratio",
            "entities a text unit by the model, divided by those of the embedded engine",
            "The model misses entities. Raise `extraction.max_gleanings`, use a larger model or smaller text units "
            "(`text_units.size`), or set `extraction.engine: embedded`.",
            "found by the embedded engine only, most frequent first",
        ),
        FigureKind(
            "engine_overlap",
            "share of the model's entities that the embedded engine finds in the same text units",
            "The model names other things than the text does. Read some of them with `graphrag-pipeline try "
            "extraction`. Topics are no error: the embedded engine finds names and key phrases only.",
            "found by the model only, most frequent first",
        ),
    )
}
"""Every figure, in the order in which they are measured."""
