"""A tuned set from the sample to the index, through HTTP: written, compared, adopted, indexed and taken back."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphrag_pipeline.cli import app
from graphrag_pipeline.engines.model.tuning.sampling import Corpus
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.index_reports import report_ledger
from graphrag_pipeline.models.prompts import DEFAULTS_FOLDER, load_prompt
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.tuned_sets import TunedSet, find_set, need_set, write_set
from graphrag_pipeline.settings.file import set_options
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest
from graphrag_pipeline_tests.support.command_line import Call, assert_one_line_error
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, ModelIndex, make_model_root
from graphrag_pipeline_tests.support.roots import build_tables
from graphrag_pipeline_tests.support.tuned_sets import EMPTY_SET

TUNING = {"corpus": 1, "types": 1, "scale": 1, "example": 4}


@dataclass
class Tuned:
    root: Path
    server: ModelServer
    name: str

    @property
    def manifest(self) -> TunedSet:
        return need_set(self.root, self.name)

    def file(self, name: str) -> str:
        return (self.root / "prompts" / "tuned" / self.name / f"{name}.txt").read_text(encoding="utf-8")


def files_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "cache" not in path.parts and "dagster" not in path.parts
    }


@pytest.fixture(scope="module")
def tuned_once(indexed_by_model: ModelIndex, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("tuned") / "root"
    shutil.copytree(indexed_by_model.root.path, path)
    options = ("--root", str(path), "tune", "--size", "4", "--examples", "2", "--yes", "--json")
    done = CliRunner().invoke(app, options, env={KEY_VARIABLE: KEY})
    return path, json.loads(done.stdout)["name"]


@pytest.fixture
def tuned(tuned_once: tuple[Path, str], model_index: ModelIndex, tmp_path: Path) -> Tuned:
    path, name = tuned_once
    shutil.copytree(path, tmp_path / "tuned")
    return Tuned(tmp_path / "tuned", model_index.server, name)


def test_tune_writes_beside_the_prompts_what_the_corpus_holds(model_index: ModelIndex, call: Call) -> None:
    root, server = model_index.root.path, model_index.server
    before = files_of(root)
    shown = call("--root", root, "tune", "--size", "4", "--examples", "2", "--dry-run")
    assert "tuning                            7        0" in shown.out and not server.calls
    assert files_of(root) == before
    outcome = call("--root", root, "tune", "--size", "4", "--examples", "2", "--name", "first", "--yes")
    assert "wrote" in outcome.out and {kind: server.count(kind) for kind in TUNING} == TUNING
    after = files_of(root)
    assert {name: data for name, data in after.items() if name in before} == before
    folder = "prompts/tuned/first"
    names = ("community_report.txt", "extract_graph.txt", "manifest.json", "summarize_descriptions.txt")
    assert sorted(after.keys() - before.keys()) == [f"{folder}/{name}" for name in names]
    found = need_set(root, "first")
    assert len(found.sample) == 4 and found.language == "English" and found.persona.startswith("You are ")
    assert "GEO" not in found.entity_types and "PLACE" in found.entity_types
    text = Root(root).tables.read("text_units", "000")["text"].to_pylist()
    text += Root(root).tables.read("text_units", "001")["text"].to_pylist()
    for example in found.examples:
        assert any(example.passage in " ".join(unit.split()) for unit in text)
        assert all(name in example.passage for name in example.entities) and example.relationships
    [run] = [run for run in report_ledger(Root(root)).runs if run.command == "tune"]
    assert (run.about, run.n_calls) == ("first", sum(TUNING.values()))


def test_a_second_tune_asks_nothing_and_writes_the_same_bytes(tuned: Tuned, call: Call, tmp_path: Path) -> None:
    before = files_of(tuned.root)
    tuned.server.reset()
    command = ("--root", tuned.root, "tune", "--size", "4", "--examples", "2")
    assert "exists already" in call(*command).out
    folder = tuned.root / "prompts" / "tuned" / tuned.name
    folder.rename(tmp_path / "moved")
    assert "wrote" in call(*command).out, "stored replies need no --yes"
    assert files_of(tuned.root) == before and not tuned.server.calls
    assert_one_line_error(call("--root", tuned.root, "tune", "--name", tuned.name, "--yes"), "is not overwritten")


def test_the_tuned_prompts_are_the_defaults_with_the_corpus_in_their_places(tuned: Tuned) -> None:
    found = tuned.manifest
    extract, report, summary = (
        tuned.file(name) for name in ("extract_graph", "community_report", "summarize_descriptions")
    )
    for text in (extract, report, summary):
        assert text.startswith(found.persona) and found.domain in text
    assert "Brill Observatory" not in extract and extract.count("\nPassage: ") == len(found.examples) == 2
    default = (DEFAULTS_FOLDER / "extract_graph.txt").read_text(encoding="utf-8")
    assert default.partition("EXAMPLE")[0] in extract and extract.endswith(default.rpartition("The passage to")[2])
    assert found.rating["criterion"] in report and "{input_text}" in report and "{{" in report


def test_try_compares_both_on_text_units_that_the_model_did_not_see(tuned: Tuned, call: Call) -> None:
    tuned.server.reset()
    before = files_of(tuned.root)
    found = json.loads(call("--root", tuned.root, "tune", "try", tuned.name, "--sample", "2", "--yes", "--json").out)
    assert not {unit["id"] for unit in found["units"]} & {unit for unit, _ in tuned.manifest.sample}
    old, new = found["old"], found["new"]
    assert old["sample"]["n_calls"] == 0, "the index asked for these"
    assert new["sample"]["n_calls"] == tuned.server.count() > 0 and new["sample"]["cost"] > 0
    assert old["figures"]["means"]["entities"]["mean"] > 3 and 0.5 < old["figures"]["means"]["agreement"]["mean"] <= 1
    assert set(old["figures"]["types"]) != set(new["figures"]["types"])
    assert new["backfill"]["cost"] > old["backfill"]["cost"], "examples cost prompt tokens"
    assert len(found["differences"]) == 7
    shown = call("--root", tuned.root, "tune", "try", tuned.name, "--sample", "2").out
    assert "entities a text unit" in shown and "agreement with the embedded engine" in shown
    assert files_of(tuned.root) == before


def test_try_never_compares_on_texts_that_the_model_saw(model_index: ModelIndex, call: Call) -> None:
    root = model_index.root.path
    n_units = Corpus(Root(root)).units.num_rows
    copied = sorted((root / "input").iterdir())[0]
    (root / "input" / "copy.txt").write_bytes(copied.read_bytes())
    call("--root", root, "tune", "--size", str(n_units - 1), "--name", "most", "--yes")
    tried = call("--root", root, "tune", "try", "most", "--sample", "5", "--yes", "--json")
    assert "warning: compares 1 of the 5 text units asked for: the model saw" in tried.err
    [unit] = json.loads(tried.out)["units"]
    assert unit["id"] not in {seen for seen, _ in need_set(root, "most").sample}
    call("--root", root, "tune", "--size", str(n_units), "--name", "all", "--yes")
    model_index.server.reset()
    tried = call("--root", root, "tune", "try", "all", "--yes")
    assert_one_line_error(tried, f"the model saw all {n_units + 1} text units", "`all`", "a smaller --size")
    assert not model_index.server.calls


def test_adopting_makes_exactly_the_users_of_the_prompts_stale_and_can_be_taken_back(tuned: Tuned, call: Call) -> None:
    root = tuned.root
    settings = (root / "settings.yaml").read_bytes()
    seen = call("--root", root, "tune", "adopt", tuned.name, "--dry-run").out
    assert "would have adopted" in seen and (root / "settings.yaml").read_bytes() == settings
    adopted = json.loads(call("--root", root, "tune", "adopt", tuned.name, "--json").out)
    stale = {item["stage"]: item["why"] for item in adopted["stale"]}
    assert "prompt extract_graph" in stale["extracted_graph"] and "entity_types" in stale["extracted_graph"]
    assert not {"documents", "text_units", "text_unit_embeddings", "sentence_embeddings"} & stale.keys()
    [extraction] = [e for e in adopted["estimates"] if e["stage"] == "extracted_graph"]
    tuned.server.reset()
    ran = {stage for stage, _ in build_tables(Root(root))}
    assert ran <= stale.keys() and {"extracted_graph", "community_reports"} <= ran
    assert tuned.server.count("extraction") + tuned.server.count("gleaning") <= extraction["n_calls"]
    assert tuned.server.count("report") > 0
    tuned.server.reset()
    assert "took back" in call("--root", root, "tune", "revert").out
    assert (root / "settings.yaml").read_bytes() == settings
    build_tables(Root(root))
    assert not tuned.server.calls, "the former replies are stored"


def test_taking_back_before_an_index_makes_all_fresh_again_and_says_so(tuned: Tuned, call: Call) -> None:
    root = tuned.root
    build_tables(Root(root))
    fresh = json.loads(call("--root", root, "status", "--json").out)["stale"]
    adopted = json.loads(call("--root", root, "tune", "adopt", tuned.name, "--json").out)
    n_caused = sum(len(item["partitions"]) for item in adopted["stale"])
    assert n_caused > 0 == adopted["n_becoming_fresh"]
    n_stale = n_caused + adopted["n_stale_before"]
    shown = call("--root", root, "tune", "revert", "--dry-run").out
    assert shown == call("--root", root, "tune", "revert").out.replace("took back", "would have taken back")
    said = f"nothing becomes stale\npartitions stale before: {n_stale}; of these become fresh: {n_caused}\n"
    assert said in shown
    assert json.loads(call("--root", root, "status", "--json").out)["stale"] == fresh


def test_taking_back_keeps_what_was_changed_since(tuned: Tuned, call: Call) -> None:
    path = tuned.root / "settings.yaml"
    types = Root(tuned.root).settings.extraction.entity_types
    call("--root", tuned.root, "tune", "adopt", tuned.name)
    path.write_text(path.read_text(encoding="utf-8") + "# a note\n", encoding="utf-8")
    call("--root", tuned.root, "tune", "revert")
    settings = Root(tuned.root).settings
    assert settings.extraction.entity_types == types and not settings.tuning.adopted and "# a note" in path.read_text()
    call("--root", tuned.root, "tune", "adopt", tuned.name)
    shown = "[" + ", ".join(tuned.manifest.entity_types) + "]"
    path.write_text(path.read_text(encoding="utf-8").replace(shown, "[MINE]"), encoding="utf-8")
    assert "extraction.entity_types was changed since and stays" in call("--root", tuned.root, "tune", "revert").out
    assert Root(tuned.root).settings.extraction.entity_types == ("MINE",)


def test_echoes_and_inventions_are_refused_and_counted(model_index: ModelIndex, call: Call) -> None:
    invented = {"name": "Zaphod Quux", "type": "PERSON", "description": "Zaphod Quux is here."}

    def script(request: ReceivedRequest) -> str | None:
        if request.kind == "types":
            return json.dumps({"entity_types": ["<TYPE>", "PERSON", "person", "PLACE", "OTHER", "A B C D"]})
        if request.kind == "scale":
            return json.dumps({"criterion": "<what makes a group matter>", "low": "x", "high": "y"})
        return json.dumps({"entities": [invented], "relationships": []}) if request.kind == "example" else None

    model_index.script = script
    root = model_index.root.path
    found = json.loads(call("--root", root, "tune", "--size", "3", "--name", "echo", "--yes", "--json").out)
    assert found["entity_types"] == ["PERSON", "PLACE"] and found["rating"] == {} and found["examples"] == []
    refused = {"type without a name": 1, "type repeated": 1, "type that catches all": 1, "type too long": 1}
    assert found["refused"] == refused | {
        "entity not in its passage": 3,
        "example with fewer than 2 entities or without a relationship": 3,
    }
    assert len(found["remarks"]) == 2 and "text of the instructions" in found["remarks"][0]
    assert "Brill Observatory" in (root / "prompts/tuned/echo/extract_graph.txt").read_text(encoding="utf-8")


def test_an_interrupted_tune_continues_where_it_stopped(model_index: ModelIndex, call: Call) -> None:
    root, server = model_index.root.path, model_index.server
    model_index.script = lambda request: Fault("401") if request.kind == "scale" else None
    outcome = call("--root", root, "tune", "--size", "3", "--yes")
    assert outcome.status == 1 and "replies so far are stored" in outcome.err.splitlines()[-1]
    assert not (root / "prompts" / "tuned").exists() and server.count("corpus") == server.count("types") == 1
    model_index.script = None
    call("--root", root, "tune", "--size", "3", "--yes")
    assert server.count("corpus") == server.count("types") == 1, "nothing is asked twice"


GERMAN = (
    "Der Hafen von Kestrel wurde von Maud Harlan gebaut. Piet Maas und Maud Harlan sind nicht im Hafen von Kestrel. "
    "Die Stadt Brantwick ist mit dem Hafen von Kestrel und der Stadt Lunn verbunden."
)
FRENCH = (
    "Le port de Kestrel est dans la ville et Maud Harlan est dans le port de Kestrel avec Piet Maas. "
    "La ville de Brantwick est avec les hommes de Lunn dans le port de Kestrel."
)


@pytest.mark.thorough
def test_a_corpus_in_other_languages_is_tuned_before_its_first_index_in_its_languages(
    model_index: ModelIndex, tmp_path: Path, call: Call
) -> None:
    root = make_model_root(tmp_path / "north", model_index.server.base_url, 0).path
    for number in range(3):
        (root / "input" / f"de{number}.txt").write_text(f"{GERMAN} Nummer {number}.", encoding="utf-8")
    (root / "input" / "fr.txt").write_text(FRENCH, encoding="utf-8")
    found = json.loads(call("--root", root, "tune", "--size", "4", "--examples", "2", "--yes", "--json").out)
    assert (found["language"], found["languages"]) == ("German", {"de": 3, "fr": 1})
    languages = {detect_language(example["passage"]) for example in found["examples"]}
    assert languages == {"de", "fr"} and all("Harlan" in " ".join(e["entities"]) for e in found["examples"])
    assert not (root / "tables").exists()
    given = call("--root", root, "tune", "--language", "German", "--types", "person, Port", "--name", "given", "--yes")
    assert "PERSON, PORT" in given.out
    call("--root", root, "tune", "adopt", "given")
    settings = Root(root).settings
    assert settings.extraction.entity_types == ("PERSON", "PORT")
    assert settings.extraction.language == settings.reports.language == settings.descriptions.language == "German"


def test_a_set_changes_nothing_for_the_embedded_engine_and_says_so(model_index: ModelIndex, call: Call) -> None:
    root = model_index.root.path
    write_set(root, EMPTY_SET, {"extract_graph": "Find {entity_types} in {input_text}"})
    text = (root / "settings.yaml").read_text(encoding="utf-8")
    (root / "settings.yaml").write_text(set_options(text, {("reports", "engine"): "embedded"}), encoding="utf-8")
    shown = call("--root", root, "tune", "adopt", "empty", "--dry-run").out
    assert "reports.engine is embedded: the tuned `community_report` is not used" in shown


def test_an_unfinished_or_foreign_folder_is_never_overwritten(tmp_path: Path) -> None:
    folder = write_set(tmp_path, EMPTY_SET, {"extract_graph": "mine"})
    (folder / "manifest.json").unlink()
    assert find_set(tmp_path, "empty") is None
    write_set(tmp_path, EMPTY_SET, {"extract_graph": "mine"})
    (folder / "manifest.json").write_text("{")
    with pytest.raises(PipelineError, match=r"manifest\.json` cannot be read"):
        find_set(tmp_path, "empty")
    with pytest.raises(PipelineError, match=r"extract_graph\.txt` exists and is not overwritten"):
        write_set(tmp_path, EMPTY_SET, {"extract_graph": "other"})


def test_an_adopted_set_that_was_deleted_is_named(model_index: ModelIndex, call: Call) -> None:
    root = model_index.root.path
    folder = write_set(root, EMPTY_SET, {})
    call("--root", root, "tune", "adopt", "empty")
    shutil.rmtree(folder)
    words = ("names the tuned set `empty`", "tune revert")
    shown = call("--root", root, "status").out
    assert all(word in shown for word in words), "status goes on, and says why stages are stale"
    assert all(word in call("--root", root, "index").err.splitlines()[-1] for word in words)
    call("--root", root, "tune", "revert")
    assert call("--root", root, "status").status == 0


def test_an_adopted_set_with_a_broken_prompt_can_be_taken_back(model_index: ModelIndex, call: Call) -> None:
    root = model_index.root.path
    folder = write_set(root, EMPTY_SET, {"extract_graph": load_prompt(None, "extract_graph").text})
    call("--root", root, "tune", "adopt", "empty")
    (folder / "extract_graph.txt").write_text("No placeholder.", encoding="utf-8")
    words = ("extract_graph.txt", "input_text", "`graphrag-pipeline tune revert`")
    shown, error = call("--root", root, "status").out, call("--root", root, "index").err.splitlines()[-1]
    assert all(word in shown and word in error for word in words)
    assert "return to the default" not in shown + error
    assert call("--root", root, "tune", "revert").status == 0
    assert call("--root", root, "status").status == 0


def test_nothing_is_sent_without_consent_or_a_model(model_index: ModelIndex, call: Call) -> None:
    outcome = call("--root", model_index.root.path, "tune")
    assert outcome.status == 1 and "error: nothing was sent: pass --yes" in outcome.err.splitlines()[-1]
    assert not model_index.server.calls
    with pytest.raises(PipelineError, match="is not a tuned set"):
        need_set(model_index.root.path, "none")
    assert_one_line_error(call("--root", model_index.root.path, "tune", "revert"), "no tuned set is adopted")
