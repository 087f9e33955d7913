"""Tuned sets: folders of prompts that `tune` wrote for the corpus, each with a manifest that says where they came from.

    prompts/tuned/NAME/manifest.json    sample, model, what the model wrote, what was refused, hashes
    prompts/tuned/NAME/*.txt            prompts that replace those of `prompts/` while the set is adopted
    prompts/tuned/adopted.json          the options that adopting changed, to take it back

A set never changes after it was written. Keep out: writing prompts (`tuning/`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files

TUNED_FOLDER = "prompts/tuned"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TunedExample:
    """An example that stands in the extraction prompt, and where its passage is.

    Attributes:
        text_unit_id, document_id: of the passage.
        passage: its text, on one line.
        entities, relationships: names in the example; pairs as "A -- B".
        coverage: share of the embedded engine's names in the passage that the example has.
    """

    text_unit_id: str
    document_id: str
    passage: str
    entities: tuple[str, ...]
    relationships: tuple[str, ...]
    coverage: float


@dataclass(frozen=True)
class TunedSet:
    """The manifest of a tuned set.

    Attributes:
        fingerprint: hash of sample, model, options and prompts; equal for equal requests.
        model: name and parameters of the chat model.
        options: sample method, size, seed, and what the user gave instead of the model.
        sample: (text unit id, document id) of the text units that the model saw.
        languages: language, as rules detect it, -> number of text units; "" if not detected.
        rating: criterion, low and high end of the rating scale of reports; empty if the default one stays.
        refused: reason -> number of values or records of the model's replies that were left out.
        remarks: what stays as it was, and why.
        bases: prompt -> hash of the file that it was made from.
        prompts: prompt -> hash of the tuned file.
        settings: options that adopting sets, by section and key.
    """

    name: str
    fingerprint: str
    model: Mapping[str, Any]
    options: Mapping[str, Any]
    sample: tuple[tuple[str, str], ...]
    languages: Mapping[str, int]
    domain: str
    language: str
    persona: str
    entity_types: tuple[str, ...]
    rating: Mapping[str, str]
    examples: tuple[TunedExample, ...]
    refused: Mapping[str, int]
    remarks: tuple[str, ...]
    bases: Mapping[str, str]
    prompts: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def folder_of(root: Path, name: str) -> Path:
    """Return the folder of a tuned set."""
    return root / TUNED_FOLDER / name


def write_set(root: Path, tuned: TunedSet, prompts: Mapping[str, str]) -> Path:
    """Write a new set; its manifest comes last, so that a set with a manifest is whole.

    Args:
        prompts: prompt -> text.

    Returns:
        Its folder.

    Raises:
        PipelineError: the folder holds another file of the name of a prompt.
    """
    folder = folder_of(root, tuned.name)
    paths = {folder / f"{name}.txt": text.encode() for name, text in prompts.items()}
    other = [path for path, data in paths.items() if path.exists() and path.read_bytes() != data]
    if other:
        raise PipelineError(f"`{other[0]}` exists and is not overwritten; move it away, or pass another --name")
    for path, data in paths.items():
        files.replace(path, data)
    manifest = json.dumps(asdict(tuned), ensure_ascii=False, indent=1, sort_keys=True)
    files.replace(folder / MANIFEST, f"{manifest}\n".encode())
    return folder


def find_set(root: Path, name: str) -> TunedSet | None:
    """Return a tuned set; None if there is no whole one of this name.

    Raises:
        PipelineError: its manifest cannot be read.
    """
    path = folder_of(root, name) / MANIFEST
    if not path.is_file():
        return None
    try:
        return TypeAdapter(TunedSet).validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PipelineError(
            f"`{path}` cannot be read ({error}); delete the folder and run `graphrag-pipeline tune` again: its replies "
            "are stored"
        ) from None


def need_set(root: Path, name: str) -> TunedSet:
    """Return a tuned set.

    Raises:
        PipelineError: it does not exist; the message lists those that do.
    """
    found = find_set(root, name)
    if found is None:
        known = ", ".join(known.name for known in list_sets(root)) or "none; `graphrag-pipeline tune` writes one"
        raise PipelineError(f"`{name}` is not a tuned set of this root; known: {known}")
    return found


def list_sets(root: Path) -> Iterator[TunedSet]:
    """Yield the tuned sets of a root, by name."""
    for path in sorted((root / TUNED_FOLDER).glob(f"*/{MANIFEST}")):
        if tuned := find_set(root, path.parent.name):
            yield tuned


def find_prompt_folder(root: Path, adopted: str, prompt: str) -> Path | None:
    """Return the folder of the adopted set if it holds this prompt.

    Raises:
        PipelineError: the adopted set does not exist.
    """
    if not adopted:
        return None
    folder = folder_of(root, adopted)
    if not (folder / MANIFEST).is_file():
        raise PipelineError(
            f"`tuning.adopted` names the tuned set `{adopted}`, but `{folder}` has none; restore it, or run "
            "`graphrag-pipeline tune revert`"
        )
    return folder if (folder / f"{prompt}.txt").is_file() else None
