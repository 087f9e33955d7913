"""Prompts: text files with placeholders. A file in the root's `prompts/` folder replaces the bundled default.

A placeholder is `{name}`. If every brace of a file is part of a placeholder or doubled, as in Microsoft GraphRAG's
prompts, a doubled brace is rendered as a single one. In a file with other single braces (plain JSON), all braces except
placeholders are kept. Values are inserted and not parsed: braces, delimiters or placeholders in a value have no effect.

Add here: the placeholders of a new prompt, in `PLACEHOLDERS`; its file goes into `prompts/`.
Keep out: when a step sends a prompt, and the meaning of a reply.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import string
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from graphrag_pipeline.errors import PipelineError, PromptError
from graphrag_pipeline.models.ports import Message
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.nearest import nearest_name

DEFAULTS_FOLDER = Path(__file__).parent.parent / "prompts"
AUTO = "auto"
"""The language setting for "the language of the text"."""

# Older prompts of Microsoft GraphRAG have placeholders for these.
DELIMITERS = {"tuple_delimiter": "<|>", "record_delimiter": "##", "completion_delimiter": "<|COMPLETE|>"}

# Prompt -> required placeholders, optional placeholders besides `language` and the delimiters.
PLACEHOLDERS: dict[str, tuple[set[str], set[str]]] = {
    "extract_graph": ({"input_text"}, {"entity_types", "context"}),
    "extract_graph_continue": (set(), set()),
    "extract_claims": ({"input_text"}, {"entity_specs", "claim_description", "context"}),
    "extract_claims_continue": (set(), set()),
    "summarize_descriptions": ({"description_list"}, {"entity_name", "max_length"}),
    "community_report": ({"input_text"}, {"max_report_length"}),
    "resolve_entities": (
        {"name_a", "name_b"},
        {"type_a", "type_b", "description_a", "description_b"},
    ),
    "local_search_answer": ({"context_data"}, {"response_type", "max_length"}),
    "local_search_keywords": (set(), set()),
    "basic_search_answer": ({"context_data"}, {"response_type", "max_length"}),
    "rate_report": ({"description"}, {"question"}),
    "rate_reports": ({"context_data"}, {"question"}),
    "global_search_map": ({"context_data"}, {"max_length"}),
    "global_search_reduce": ({"report_data"}, {"response_type", "max_length"}),
    "drift_hypothetical_answer": (set(), {"max_length"}),
    "drift_primer": ({"context_data"}, {"max_length", "max_follow_ups"}),
    "drift_follow_up": ({"context_data"}, {"main_question", "max_length", "max_follow_ups"}),
    "lazy_subqueries": (set(), {"max_subqueries"}),
    "lazy_search_map": ({"context_data"}, {"max_length"}),
    "rate_text_units": ({"context_data"}, {"question"}),
    "follow_up_questions": ({"context_data"}, {"question_count"}),
    "benchmark_personas": ({"context_data"}, {"n_personas", "n_tasks"}),
    "benchmark_global_questions": ({"context_data"}, {"persona", "task", "n_questions"}),
    "benchmark_local_questions": ({"context_data"}, {"persona", "task", "n_questions"}),
    "judge_answers": ({"answer_1", "answer_2"}, {"question", "criterion", "definition"}),
    "split_statements": ({"text"}, {"question"}),
    "check_statements": ({"statements", "text"}, {"question"}),
    "tune_corpus": ({"context_data"}, set()),
    "tune_entity_types": ({"context_data"}, {"domain", "persona", "max_types"}),
    "tune_rating": ({"context_data"}, {"domain", "persona"}),
    "tune_example": ({"input_text", "entity_types"}, {"persona"}),
}
PROMPT_NAMES = tuple(PLACEHOLDERS)
TO_DEFAULT = "delete the file to return to the default"
TO_FORMER = "write another set; `graphrag-pipeline tune revert` takes an adopted one back"
_OTHER_FILES = {  # names of the files in Microsoft GraphRAG
    "community_report": ("community_report_graph.txt",),
    "local_search_answer": ("local_search_system_prompt.txt",),
    "basic_search_answer": ("basic_search_system_prompt.txt",),
    "global_search_map": ("global_search_map_system_prompt.txt",),
    "global_search_reduce": ("global_search_reduce_system_prompt.txt",),
    "follow_up_questions": ("question_gen_system_prompt.txt",),
}
FORMER_DEFAULTS = {
    "extract_graph": {"d05ead6f16b7ad368d10dc634f46b2043f689f778db70d2bad8241407cc4703e"},
    "extract_claims": {"51779c41488e8a749b87627bf042c74c5c9aa75efcfe4e207c2fb789deb268bb"},
    "community_report": {"f8393c46b5d85ec8814e58a304612857bf55d7f18ddf94b55e1b5ed033be5bf3"},
}
"""Hashes of default texts of earlier releases. A root keeps its copy until the user deletes it; it is not edited."""
_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")
_PLAIN = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Prompt:
    """A prompt file.

    Attributes:
        name: one of `PROMPT_NAMES`.
        text: the template.
        sha256: hash of the file's bytes; part of the code version of the stage that sends the prompt.
        path: path of the file, for messages.
    """

    name: str
    text: str
    sha256: str
    path: str

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The names in braces, with or without a value."""
        found = self._pattern.finditer(self.text)
        return frozenset(match.group(1) for match in found if match.group(1))

    @cached_property
    def echoes(self) -> PromptEchoes:
        """What a reply must not repeat as content."""
        return PromptEchoes(self.text)

    def render(self, **values: str) -> str:
        """Return the prompt with its placeholders filled; ignore values without a placeholder.

        Raises:
            PipelineError: a placeholder has no value; the message suggests the nearest known name.
        """
        known = DELIMITERS | values
        missing = sorted(self.placeholders - known.keys()) if self.is_escaped else []
        if missing:
            raise PipelineError(f"{self.path}: {_explain_missing(missing, sorted(known))}")

        def fill(match: re.Match[str]) -> str:
            name = match.group(1)
            return known.get(name, match.group(0)) if name else match.group(0)[0]

        return self._pattern.sub(fill, self.text)

    @cached_property
    def is_escaped(self) -> bool:
        """Whether `str.format` could render the file: each brace is doubled or part of a plain placeholder."""
        try:
            fields = [field for _, field, _, _ in string.Formatter().parse(self.text) if field is not None]
        except ValueError:
            return False
        return all(field.isidentifier() for field in fields)

    @property
    def _pattern(self) -> re.Pattern[str]:
        return _BRACES if self.is_escaped else _PLAIN


def default_prompts() -> dict[str, str]:
    """Return the texts of the default prompts by file name."""
    files = (f"{name}.txt" for name in PROMPT_NAMES)
    return {file: (DEFAULTS_FOLDER / file).read_text(encoding="utf-8") for file in files}


def load_prompt(folder: Path | None, name: str, way_back: str = TO_DEFAULT) -> Prompt:
    """Read a prompt: the user's file in `folder` (the root's `prompts/`) if it exists, else the default.

    Args:
        way_back: what to do to be rid of the file, for error messages.

    Raises:
        PipelineError: the file is not UTF-8 text, lacks a required placeholder, or has an unknown one.
    """
    path = (folder or DEFAULTS_FOLDER) / f"{name}.txt"
    try:
        path = _find_prompt(folder, name)
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: cannot be read as UTF-8 text ({error}); repair the file, or {way_back}") from None
    prompt = Prompt(name, text.replace("\r\n", "\n"), hashlib.sha256(data).hexdigest(), str(path))
    _check(prompt, way_back)
    return prompt


def _find_prompt(folder: Path | None, name: str) -> Path:
    """Find the user's file, else the default; Microsoft's file wins over an unedited copy of the default."""
    default = DEFAULTS_FOLDER / f"{name}.txt"
    others = [folder / file for file in _OTHER_FILES.get(name, ()) if (folder / file).is_file()] if folder else []
    own = folder / default.name if folder else default
    if not own.is_file():
        return others[0] if others else default
    is_edited = not others or not (_is_same(own, default) or is_former_default(own))
    return own if is_edited else others[0]


def find_edited_prompt(folder: Path, name: str) -> Path | None:
    """Return the user's file of a prompt if it differs from the default; None without one."""
    path, default = _find_prompt(folder, name), DEFAULTS_FOLDER / f"{name}.txt"
    return None if _is_same(path, default) or is_former_default(path) else path


def is_former_default(path: Path) -> bool:
    """Return whether a prompt file is an unedited default of an earlier release."""
    known = FORMER_DEFAULTS.get(path.stem, set())
    return path.is_file() and hashlib.sha256(_read_plain(path) + b"\n").hexdigest() in known


def _is_same(path: Path, default: Path) -> bool:
    return _read_plain(path) == _read_plain(default)


def _read_plain(path: Path) -> bytes:
    return path.read_bytes().removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").strip()


def open_conversation(prompt: Prompt, language: str, **values: str) -> list[Message]:
    """Return the first turn of a conversation: the rendered prompt.

    If the prompt has no `{language}`, such as one tuned for Microsoft GraphRAG, and the language is not `auto`, a
    system turn before it names the language.
    """
    content = prompt.render(language=instruct_language(language), **values)
    turns: list[Message] = [{"role": "user", "content": content}]
    if "language" in prompt.placeholders or language.strip().lower() == AUTO:
        return turns
    return [{"role": "system", "content": instruct_language(language)}, *turns]


def instruct_language(language: str) -> str:
    """Return the sentence for `{language}`: it names a language, or the language of the text for `auto`."""
    if language.strip().lower() == AUTO:
        return "Write in the language of the text; leave names as the text writes them."
    return f"Write everything but names in {language.strip()}, whatever the language of the text."


def _check(prompt: Prompt, way_back: str) -> None:
    required, optional = PLACEHOLDERS[prompt.name]
    missing = sorted(required - prompt.placeholders)
    if missing:
        raise PromptError(
            f"{prompt.path}: the placeholder {_braced(missing)} is missing, so the model would not get the text; "
            f"add it where the text belongs, or {way_back}"
        )
    known = required | optional | {"language"} | DELIMITERS.keys()
    unknown = sorted(prompt.placeholders - known) if prompt.is_escaped else []
    if unknown:
        raise PromptError(f"{prompt.path}: {_explain_missing(unknown, sorted(known))}, or {way_back}")


def _explain_missing(missing: list[str], known: list[str]) -> str:
    near = nearest_name(missing[0], known)
    hint = f"did you mean {{{near}}}?" if near else f"known: {_braced(known)};"
    return f"no value for {_braced(missing)}; {hint} Double the braces that are not a placeholder"


def _braced(names: list[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
