"""The configuration of a query job: one flat place, with every option of the method, its default and its description.

The classes are made from the method's section of the settings. Their defaults are the values of settings.yaml, so the
Launchpad's scaffold shows what a question would be answered with. Dagster refuses unknown names and values that are not
in a list. Limits of numbers are checked by the first op, before anything is paid. Keep out: what an option does
(`settings/`).
"""

from collections.abc import Iterable, Mapping
from datetime import date
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import dagster as dg
from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.query.methods.method import SearchMethod
from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS, SEARCH_METHODS, STRATEGIES
from graphrag_pipeline.settings.settings import Settings

OPTIONS = "with_options"
"""Place of the options of a method. Dagster sorts names, so that it comes after question, filters and strategy."""
WITHOUT_VALUE = "without_value"
"""Option of a job that only lists the options that are null: Dagster leaves null values out of the Launchpad's text."""
EXAMPLE_QUESTION = "What are the main topics of these documents?"
"""The question that the Launchpad shows at first."""


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
    """A question as a query job gets it; its subclasses add the options of a method."""

    question: str = Field(default=EXAMPLE_QUESTION, description="The question, in words.")
    snapshot: str | None = Field(default=None, description="Snapshot id; null: the published snapshot.")
    filters: list[str] = Field(default=[], description="Read only documents that match all of them: year>=2024.")


def question_config(method: SearchMethod, settings: Settings) -> type[AskedQuestion]:
    """Return the configuration of a method's job; `OPTIONS` holds the options of the method.

    `strategy` is an option of local search. It has its own place, because `auto` has it, too.
    """
    section: BaseModel = settings.search(method.name)
    fields_of = type(section).model_fields
    options = {name: fields_of[name] for name in method.options if name != "strategy"}
    fields = {name: _option(name, info, getattr(section, name)) for name, info in options.items()}
    unset = [name for name, (_, info) in fields.items() if info.default is None]
    if unset:
        fields[WITHOUT_VALUE] = (
            list[_one_of(f"{method.name}_{WITHOUT_VALUE}", unset)],  # type: ignore[misc]
            Field(
                default=unset,
                description="Options that are null. To set one, take it from this list and write it with its value.",
            ),
        )
    described = f"Options of {method.section}, with the values of settings.yaml."
    section_config: Any = create_model(f"{method.name.title()}Options", __base__=dg.Config, **fields)  # type: ignore[call-overload]
    own: dict[str, Any] = {OPTIONS: (section_config, Field(default=section_config(), description=described))}
    if "strategy" in method.options:
        chosen = StrategyName(getattr(section, "strategy"))  # noqa: B009 - not all sections have it
        own["strategy"] = (StrategyName, Field(default=chosen, description="Text unit selection strategy."))
    elif method.name not in CHOOSABLE_METHODS:
        described = "Text unit selection strategy if local search is picked; null: that of the settings."
        own["strategy"] = (StrategyName | None, Field(default=None, description=described))
    model: type[AskedQuestion] = create_model(f"{method.name.title()}Question", __base__=AskedQuestion, **own)
    return model


def refuse_contradiction(run_config: Mapping[str, Any]) -> None:
    """Refuse options that have a value and are listed as options without one.

    Args:
        run_config: as it was given, without defaults.

    Raises:
        SettingsError: with the names of the options.
    """
    options = run_config.get(OPTIONS) or {}
    both = [name for name in options.get(WITHOUT_VALUE) or () if options.get(name) is not None]
    if both:
        shown = ", ".join(f"{name}: {options[name]}" for name in both)
        raise SettingsError(
            f"{OPTIONS} has {shown} and lists {', '.join(both)} under {WITHOUT_VALUE}, too; remove one of the two"
        )


def _option(name: str, info: FieldInfo, value: Any) -> tuple[Any, Any]:
    """Return the type and the field of an option, as `create_model` takes them."""
    bounds = [
        f"{words} {getattr(limit, bound):g}"
        for limit in info.metadata
        for bound, words in _BOUNDS.items()
        if getattr(limit, bound, None) is not None
    ]
    text = f"{(info.description or '').rstrip('.')}" + (f" ({', '.join(bounds)})" if bounds else "") + "."
    config_type = _config_type(name, info.annotation)
    return config_type, Field(default=_default(config_type, value), description=text)


def _config_type(name: str, annotation: Any) -> Any:
    """Return the type that Dagster has for an option: an enum for a literal, a list for a tuple, text for a day."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _config_type(name, arguments[0])
    if origin in _UNION_TYPES:
        [inner] = [each for each in arguments if each is not type(None)]
        return _config_type(name, inner) | None
    if origin is Literal:
        return _one_of(f"{name}_value", arguments)
    if origin is tuple:
        is_turn = get_origin(arguments[0]) is tuple
        return list[Turn] if is_turn else list[_config_type(name, arguments[0])]  # type: ignore[misc]
    return str if annotation is date else annotation


def _default(config_type: Any, value: Any) -> Any:
    """Return the value of the settings as Dagster takes a default: items of a list as in YAML, a choice as its enum."""
    if isinstance(value, tuple):
        return [_turn(*each) if isinstance(each, tuple) else each for each in value]
    if isinstance(value, date):
        return value.isoformat()
    types = [each for each in (config_type, *get_args(config_type)) if isinstance(each, type)]
    enums = [each for each in types if issubclass(each, Enum)]
    return enums[0](value) if enums and value is not None else value


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
