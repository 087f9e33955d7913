from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.prompts import DEFAULTS_FOLDER, PROMPT_NAMES, load_prompt, open_conversation

# Laid out as prompts for Microsoft GraphRAG are.
TUNED = """-Goal-
Find all entities of the following types: [{entity_types}].
Format: ("entity"{tuple_delimiter}<entity_name>{tuple_delimiter}<entity_type>{tuple_delimiter}<entity_description>)
Use **{record_delimiter}** as the list delimiter. When finished, output {completion_delimiter}
Example: {{"title": "x", "inner": {{"a": [1]}}}}
######################
Text: {input_text}
Output:"""


def write(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    return load_prompt(folder, name)


def test_every_default_prompt_is_there_and_renders():
    for name in PROMPT_NAMES:
        prompt = load_prompt(None, name)
        rendered = prompt.render(**dict.fromkeys(prompt.placeholders, "VALUE"))
        assert prompt.sha256 == hashlib.sha256((DEFAULTS_FOLDER / f"{name}.txt").read_bytes()).hexdigest()
        assert "{{" not in rendered
        assert rendered.count("VALUE") >= len(prompt.placeholders)
    assert sorted(f"{name}.txt" for name in PROMPT_NAMES) == sorted(path.name for path in DEFAULTS_FOLDER.iterdir())


def test_the_users_file_beats_the_default(tmp_path):
    assert write(tmp_path, "extract_graph", "Mine: {input_text}").text == "Mine: {input_text}"
    assert load_prompt(tmp_path, "extract_claims") == load_prompt(None, "extract_claims")
    assert load_prompt(tmp_path / "missing", "extract_graph") == load_prompt(None, "extract_graph")


def test_the_hash_is_of_the_files_bytes(tmp_path):
    first = write(tmp_path, "extract_graph", "Mine: {input_text}")
    assert first.sha256 == hashlib.sha256(b"Mine: {input_text}").hexdigest()
    assert write(tmp_path, "extract_graph", "Mine: {input_text} ").sha256 != first.sha256


def test_a_prompt_tuned_for_microsoft_graphrag_works_unchanged(tmp_path):
    rendered = write(tmp_path, "extract_graph", TUNED).render(entity_types="PERSON", input_text="A text.")
    assert rendered == TUNED.replace("{{", "{").replace("}}", "}").replace("{entity_types}", "PERSON").replace(
        "{tuple_delimiter}", "<|>"
    ).replace("{record_delimiter}", "##").replace("{completion_delimiter}", "<|COMPLETE|>").replace(
        "{input_text}", "A text."
    )


def test_microsofts_name_of_the_report_prompt_is_read(tmp_path):
    (tmp_path / "community_report_graph.txt").write_text("Data: {input_text}")
    assert load_prompt(tmp_path, "community_report").text == "Data: {input_text}"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("local_search_answer", "local_search_system_prompt"),
        ("basic_search_answer", "basic_search_system_prompt"),
        ("global_search_map", "global_search_map_system_prompt"),
        ("global_search_reduce", "global_search_reduce_system_prompt"),
    ],
)
def test_microsofts_query_prompts_are_read_over_untouched_copies_of_the_defaults(tmp_path, name, file):
    theirs = '"points": [{{"score": 1}}] {context_data} {report_data} {response_type} {max_length}'
    known = theirs if name == "global_search_map" else theirs.replace(" {context_data}", "", "reduce" in name)
    known = known.replace(" {report_data}", "", "reduce" not in name).replace(" {response_type}", "", "map" in name)
    (tmp_path / f"{name}.txt").write_bytes((DEFAULTS_FOLDER / f"{name}.txt").read_bytes())
    (tmp_path / f"{file}.txt").write_text(known)
    assert load_prompt(tmp_path, name).text == known
    mine = f"{(DEFAULTS_FOLDER / f'{name}.txt').read_text()} And be brief."
    (tmp_path / f"{name}.txt").write_text(mine)
    assert load_prompt(tmp_path, name).text == mine, "an edited file has priority"


@given(st.text(st.sampled_from("{}ab_<|>%\\1"), max_size=30))
def test_braces_in_a_users_text_never_break_rendering(text):
    prompt = load_prompt(None, "extract_graph")
    rendered = prompt.render(entity_types="PERSON", input_text=text, context="", language="")
    assert rendered == prompt.render(entity_types="PERSON", input_text="@@@", context="", language="").replace(
        "@@@", text
    )
    assert (
        prompt.render(entity_types="{input_text}", input_text=text, context="", language="").count("{input_text}") >= 1
    )


def test_plain_json_in_a_prompt_stays_unchanged(tmp_path):
    prompt = write(tmp_path, "community_report", 'As {"a": {"b": [{"c": 1}]}} says: {input_text}')
    assert prompt.render(input_text="X", max_report_length="9") == 'As {"a": {"b": [{"c": 1}]}} says: X'


def test_a_missing_placeholder_of_a_prompt_is_named(tmp_path):
    with pytest.raises(PipelineError, match=r"extract_graph\.txt: the placeholder \{input_text\} is missing"):
        write(tmp_path, "extract_graph", "Find {entity_types}.")
    with pytest.raises(PipelineError, match=r"no value for \{entity_typs\}; did you mean \{entity_types\}\?"):
        write(tmp_path, "extract_graph", "Find {entity_typs} in {input_text}")
    with pytest.raises(PipelineError, match=r"no value for \{input_text\}"):
        load_prompt(None, "extract_graph").render(entity_types="PERSON", context="", language="")
    with pytest.raises(PipelineError, match="cannot be read as UTF-8 text"):
        (tmp_path / "extract_graph.txt").write_bytes(b"\xff\xfe\xff")
        load_prompt(tmp_path, "extract_graph")


def test_the_language_is_requested_in_the_prompt_or_before_it(tmp_path):
    default, tuned = load_prompt(None, "extract_graph"), write(tmp_path, "extract_graph", TUNED)
    values = {"entity_types": "PERSON", "context": "", "input_text": "X"}
    [turn] = open_conversation(default, "auto", **values)
    assert "in the language of the text" in turn["content"]
    [turn] = open_conversation(default, "German", **values)
    assert "in German" in turn["content"]
    assert [turn["role"] for turn in open_conversation(tuned, "Auto", **values)] == ["user"]
    system, user = open_conversation(tuned, "German", **values)
    assert (system["role"], "in German" in system["content"], "German" in user["content"]) == ("system", True, False)
