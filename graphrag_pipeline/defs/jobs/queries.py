"""The jobs that answer a question: one for each search method, its ops and configuration; and the asset of answers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import dagster as dg
import pyarrow.compute as pc
from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.pages.metadata import COST, as_markdown, round_figures
from graphrag_pipeline.defs.assets.published import link_snapshot
from graphrag_pipeline.defs.runs.errors import in_words
from graphrag_pipeline.defs.runs.executor import IndexRoot, job_options
from graphrag_pipeline.defs.runs.naming import ASK, KIND_TAG, SEARCH_JOB, asset_key, full_name, group_of
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.index.graph_index import GraphIndex, as_result, prepare_query, run_step
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest, SearchState
from graphrag_pipeline.query.rendering import render_answer
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.token_budget import EMBEDDED, QueryUsage
from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS, SEARCH_METHODS, STRATEGIES
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.safe_output import neutralize_markdown

ANSWERS = "answers"
_MAX_SHOWN = 50_000
"""Characters of an answer in an event: the UI shows no more at once, and every event is a row of the database."""
_COUNTS = ("rated", "kept", "pruned")
"""Counts of community reports, if the method rates them; separate numbers, which the UI plots."""


def build_answers_asset(root: Root) -> dg.AssetSpec:
    """Build the asset of lineage."""
    return dg.AssetSpec(
        asset_key(root, ANSWERS),
        deps=[asset_key(root, SNAPSHOT.name)],
        group_name=group_of(root, SNAPSHOT.group),
        description="What query jobs and the batch job answered, one materialization each, with its account.",
        kinds={"markdown"},
    )


def count_tokens(usage: QueryUsage) -> dict[str, int]:
    """Return the tokens that models were sent and sent back; of the embedded engine, those of context and answer."""
    sent, embedded = usage.of_models, usage.by_model.get(EMBEDDED)
    shown = {"tokens sent to models and received": sent.input_tokens + sent.output_tokens}
    if embedded:
        shown["tokens of context and answer without a model"] = embedded.input_tokens + embedded.output_tokens
    return shown


def keep_answer(context: dg.OpExecutionContext, root: Root, answer: SearchResult, filters: Sequence[str] = ()) -> None:
    """Record an answer in the history."""
    total = answer.usage.of_models
    method = str(answer.selection.get("chosen", answer.method))
    metadata: dict[str, Any] = {
        "question": answer.question,
        "answer": as_markdown(answer.to_markdown()[:_MAX_SHOWN]),
        "method": method,
        "strategy": answer.options.get("strategy") or f"{method} search has none",
        "snapshot": answer.snapshot,
        **link_snapshot(context.instance, root, answer.snapshot),
        "asset of the snapshot": dg.MetadataValue.asset(asset_key(root, SNAPSHOT.name)),
        **count_tokens(answer.usage),
        "model calls": total.calls,
        **({"model calls without a price": total.unpriced} if total.unpriced else {COST: round(total.cost, 6)}),
        "seconds to answer": round(answer.seconds, 3),
        "citations in the answer": len(answer.citations),
        "options of the method": dg.MetadataValue.json(dict(answer.options)),
        "selection": dg.MetadataValue.json(round_figures(answer.selection)),
    }
    metadata |= {name: answer.selection[name] for name in _COUNTS if name in answer.selection}
    if line := answer.usage.to_line():
        metadata["models"] = line
    if filters:
        metadata["filters"] = " and ".join(filters)
    shown = neutralize_markdown(answer.question[:200])
    context.log_event(dg.AssetMaterialization(asset_key(root, ANSWERS), description=shown, metadata=metadata))
    report_costs(context.instance, root)


OPTIONS = "with_options"
"""Place of the options of a method. Dagster sorts names, so that it comes after question, method and snapshot."""
EXAMPLE_QUESTION = "What are the main topics of these documents?"
"""The question that the Launchpad shows at first, where a search can answer it."""
_NEEDS_A_NAME = ("local", "basic")
"""Methods that look for the words of a question, so that an overview is not found."""
PUBLISHED = "published"
"""The published snapshot, in place of an id."""


def _one_of(name: str, values: Iterable[str]) -> Any:
    """Return an enumeration of words, each its own value."""
    return Enum(name, {value: value for value in values})


MethodName: Any = _one_of("MethodName", SEARCH_METHODS)
"""Names of search methods; Dagster lists them, and refuses others."""
StrategyName: Any = _one_of("StrategyName", STRATEGIES)
"""Names of text unit selection strategies."""
Role: Any = _one_of("Role", ("user", "assistant"))

_UNION_TYPES = (Union, UnionType)
_BOUNDS = {"ge": "at least", "le": "at most"}


class Turn(dg.Config):
    """One turn of a conversation before the question."""

    role: Role = Field(description="The speaker of the turn.")
    content: str = Field(description="What was said.")


class AskedQuestion(dg.Config):
    """A question as a query job gets it; its subclasses add the method and its options."""

    snapshot: str | None = Field(default=PUBLISHED, description=f"Snapshot id; `{PUBLISHED}` or null: that one.")
    filters: list[str] = Field(default=[], description="Read only documents that match all of them: year>=2024.")
    strategy: StrategyName | None = Field(default=None, description=f"As in `{OPTIONS}`, for older run configurations.")


def question_config(method: SearchMethod, settings: Settings, example: str) -> type[AskedQuestion]:
    """Return the configuration of a method's job; `OPTIONS` holds the options of the method.

    No option has a default here, so the Launchpad shows none at first; an absent one has the value of the settings.
    `strategy` is an option of local search; `auto` has it, too.

    Args:
        example: the question that the Launchpad shows at first.
    """
    section: BaseModel = settings.search(method.name)
    fields_of = type(section).model_fields
    options = {name: _option(name, fields_of[name], getattr(section, name)) for name in method.options}
    if method.name not in CHOOSABLE_METHODS:
        described = "Text unit selection strategy if local search is picked (settings: that of local search)."
        options["strategy"] = (StrategyName | None, Field(default=None, description=described))
    section_config: Any = create_model(f"{method.name.title()}Options", __base__=dg.Config, **options)  # type: ignore[call-overload]
    names = _one_of(f"{method.name.title()}Method", [method.name])
    described = f"Options over those of {method.section} in settings.yaml; complete a name with Ctrl+Space."
    own: dict[str, Any] = {
        "question": (str, Field(default=example, description="The question, in words.")),
        "method": (names, Field(default=names(method.name), description="That of the job; each method has its job.")),
        OPTIONS: (section_config | None, Field(default={}, description=described)),
    }
    model: type[AskedQuestion] = create_model(f"{method.name.title()}Question", __base__=AskedQuestion, **own)
    return model


def _option(name: str, info: FieldInfo, value: Any) -> tuple[Any, Any]:
    """Return the type and the field of an option, as `create_model` takes them."""
    bounds = [
        f"{words} {getattr(limit, bound):g}"
        for limit in info.metadata
        for bound, words in _BOUNDS.items()
        if getattr(limit, bound, None) is not None
    ]
    text = f"{(info.description or '').rstrip('.')} ({'; '.join([*bounds, f'settings: {value}'])})."
    return _config_type(name, info.annotation) | None, Field(default=None, description=text)


def _config_type(name: str, annotation: Any) -> Any:
    """Return the type that Dagster has for an option: an enum for a literal, a list for a tuple, text for a day."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _config_type(name, arguments[0])
    if origin in _UNION_TYPES:
        [inner] = [each for each in arguments if each is not type(None)]
        return _config_type(name, inner)
    if origin is Literal:
        return _one_of(f"{name}_value", arguments)
    if origin is tuple:
        is_turn = get_origin(arguments[0]) is tuple
        return list[Turn] if is_turn else list[_config_type(name, arguments[0])]  # type: ignore[misc]
    return str if annotation is date else annotation


class MethodOptions(dg.PermissiveConfig):
    """Options of a method by name; null is a value, too."""


class PinnedQuestion(dg.Config):
    """A question as the job's configuration hands it to the first op."""

    question: str
    filters: list[str]
    snapshot: str | None = None
    strategy: str | None = None
    options: MethodOptions = MethodOptions()


# ---------------------------------------------------------------------------------------------------------------- open


def pin_question(asked: AskedQuestion) -> PinnedQuestion:
    """Return a job's configuration as plain values for its first op."""
    values = asked.model_dump(mode="json", warnings=False, exclude_none=True)
    options = values.pop(OPTIONS, {})
    values["strategy"] = options.pop("strategy", values.get("strategy"))
    del values["method"]
    if values.get("snapshot") == PUBLISHED:
        del values["snapshot"]
    return PinnedQuestion(**values, options=MethodOptions(**options))


def build_opening_op(method: SearchMethod) -> dg.OpDefinition:
    """Build the op that pins a question of a method to a snapshot; its configuration is the question."""

    @dg.op(name=opening_op_name(method), description="Pin the snapshot and read the question.")
    def open_snapshot(
        context: dg.OpExecutionContext,
        config: PinnedQuestion,
        index_root: IndexRoot,
    ) -> SearchState:
        with in_words():
            return _pin(context, index_root, config, method.name)

    return open_snapshot


def opening_op_name(method: SearchMethod) -> str:
    """Return the name of a method's first op."""
    return f"open_snapshot_for_{method.name}_search"


def _pin(context: dg.OpExecutionContext, root: IndexRoot, config: PinnedQuestion, method: str) -> SearchState:
    index = GraphIndex.open(root.path, snapshot=config.snapshot)
    request = SearchRequest(
        config.question, method, config.strategy, tuple(config.filters), config.options.model_dump()
    )
    query = prepare_query(index, request)
    shown = {"snapshot": query.snapshot, "question": query.user_question, "job": context.job_name}
    if document_mask := index.where(query.filters).document_mask:
        shown |= {"filters": " and ".join(query.filters), "documents passing": str(document_mask.n_documents)}
    context.log_event(dg.AssetObservation(asset_key(root.open(), SNAPSHOT.name), metadata=shown))
    return SearchState(query)


# --------------------------------------------------------------------------------------------------------------- steps


def build_step_op(step: SearchStep) -> dg.OpDefinition:
    """Build the op of a step in the middle of a search."""

    @dg.op(name=step.name, description=step.description)
    def run(context: dg.OpExecutionContext, index_root: IndexRoot, state: SearchState) -> SearchState:
        after = _run(context, index_root, step, state)
        context.add_output_metadata(round_figures(step.show(after)) | _models(after))
        return after

    return run


def build_answering_op(step: SearchStep) -> dg.OpDefinition:
    """Build the op of a search's last step: the answer as markdown in the UI and in the history of answers."""

    @dg.op(name=step.name, description=step.description)
    def run(context: dg.OpExecutionContext, index_root: IndexRoot, state: SearchState) -> dict[str, Any]:
        after = _run(context, index_root, step, state)
        query, answer = after.query, after.noted_answer
        markdown = render_answer(answer.text, answer.citations)
        output = {"question": query.user_question, "snapshot": query.snapshot}
        shown = output | {"answer": as_markdown(markdown), **_models(after)}
        if answer.n_invented:
            shown["invented citations removed"] = answer.n_invented
        if answer.n_copied:
            shown["sentences copied from the prompt"] = answer.n_copied
        if answer.unread:
            shown["not read"] = answer.unread.describe()
        if answer.uncited:
            shown["sentences without support"] = sum(sentence.citation is None for sentence in answer.uncited)
        context.add_output_metadata(shown)
        selection = {**after.selection, **step.show(after), **query.time.account}
        kept = replace(as_result(after, query.method, query.user_question), selection=selection)
        keep_answer(context, index_root.open(), kept, query.filters)
        context.log.info(f"The answer, by {query.method} search of snapshot {query.snapshot}:\n\n{markdown}")
        return output | {"answer": answer.text}

    return run


def build_choosing_op(step: SearchStep) -> dg.OpDefinition:
    """Build the op that picks a method: an output for each, of which one is given."""

    @dg.op(
        name=step.name,
        description=step.description,
        out={method_output(method): dg.Out(SearchState, is_required=False) for method in CHOOSABLE_METHODS},
    )
    def run(
        context: dg.OpExecutionContext, index_root: IndexRoot, state: SearchState
    ) -> Iterator[dg.Output[SearchState]]:
        after = _run(context, index_root, step, state)
        yield dg.Output(after, output_name=method_output(after.query.method), metadata=round_figures(step.show(after)))

    return run


def method_output(method: str) -> str:
    """Return the name of the choosing op's output for a method."""
    return f"{method}_search"


def _run(context: dg.OpExecutionContext, root: IndexRoot, step: SearchStep, state: SearchState) -> SearchState:
    index = GraphIndex.open(root.path, snapshot=state.query.snapshot).where(state.query.filters)
    with in_words(), paid_run("query", f"dagster {context.run_id}", context.run_id):
        return run_step(index, step, state)


def _models(after: SearchState) -> dict[str, Any]:
    """Return the calls to models of this op; an empty dict if there were none."""
    line = after.step_usage.to_line()
    return {"models": line} if line else {}


_ALIASES = {"local": "answer_locally", "basic": "answer_basically"}
"""Names in the job of `auto` of a step that several methods share, as run histories know them."""


def _build_ops() -> dict[str, dg.OpDefinition]:
    """Build the op of each step, once for steps that methods share."""
    ops: dict[str, dg.OpDefinition] = {}
    for name in CHOOSABLE_METHODS:
        *steps, last = METHODS[name].steps
        ops |= {step.name: build_step_op(step) for step in steps if step.name not in ops}
        ops.setdefault(last.name, build_answering_op(last))
    return ops


_OPENING = {method.name: build_opening_op(method) for method in METHODS.values()}
_OPS = _build_ops()
_CHOOSING = build_choosing_op(METHODS["auto"].steps[0])


def _chain(steps: tuple[SearchStep, ...], state: Any, alias: str = "") -> None:
    """Compose the ops of steps in a row.

    Args:
        alias: of the last op.
    """
    *others, last = steps
    for step in others:
        state = _OPS[step.name](state)
    answering = _OPS[last.name].alias(alias) if alias else _OPS[last.name]
    answering(state)


def _chain_chosen(method: SearchMethod, state: Any) -> None:
    """Compose the ops of all methods behind the op that picks one of them."""
    chosen = _CHOOSING(state)
    names = [METHODS[name].steps[-1].name for name in CHOOSABLE_METHODS]
    for name in CHOOSABLE_METHODS:
        last = METHODS[name].steps[-1].name
        alias = _ALIASES.get(name, f"{last}_{name}") if names.count(last) > 1 else ""
        _chain(METHODS[name].steps, getattr(chosen, method_output(name)), alias)


def build_query_jobs(root: Root) -> list[dg.JobDefinition]:
    """Build the jobs of a root, one for each method."""
    return [_build_job(root, method) for method in METHODS.values()]


def _example_question(root: Root, method: SearchMethod) -> str:
    """Return a question that a method answers from any index: an overview, or what is said of its most linked name."""
    if method.name not in _NEEDS_A_NAME:
        return EXAMPLE_QUESTION
    try:
        with closing(root.snapshots.open()) as snapshot:
            rows = snapshot.table("entities").select(["title", "degree"])
            [title] = rows.take(pc.select_k_unstable(rows, 1, [("degree", "descending")]))["title"].to_pylist()
    except (PipelineError, ValueError):  # nothing is published, or it has no name
        return EXAMPLE_QUESTION
    return f"What is said about {title}?"


def _map_question(root: Root, method: SearchMethod) -> dg.ConfigMapping:
    """Return the mapping of a job's configuration to that of its first op."""
    config_type = question_config(method, root.settings, _example_question(root, method))

    @dg.config_mapping
    def hand_on(config: config_type) -> dg.RunConfig:  # type: ignore[valid-type]
        return dg.RunConfig(ops={opening_op_name(method): pin_question(config)})

    return hand_on


def _build_job(root: Root, method: SearchMethod) -> dg.JobDefinition:
    """Build a method's job; the Launchpad shows a question to replace."""

    @dg.job(
        name=full_name(root, f"{method.name}{SEARCH_JOB}"),
        description=method.description,
        config=_map_question(root, method),
        tags={KIND_TAG: ASK},
        **job_options(root),
    )
    def job() -> None:
        state = _OPENING[method.name]()
        if method.name in CHOOSABLE_METHODS:
            _chain(method.steps, state)
        else:
            _chain_chosen(method, state)

    return job
