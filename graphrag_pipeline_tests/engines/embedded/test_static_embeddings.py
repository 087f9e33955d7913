"""Static embeddings: similarity, independence of each vector from other texts, and the origin of the bundled files."""

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded import static_embeddings
from graphrag_pipeline.engines.embedded.static_embeddings import StaticEmbeddings, load_static_embeddings

MAX_BUNDLE_BYTES = 16_000_000
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200) | st.sampled_from(
    ["a doctor treated the patient", "stock prices fell", "", "naïve café", "\ud800", "北京 is a city", "😀"]
)


@pytest.fixture(scope="module")
def embeddings() -> StaticEmbeddings:
    return load_static_embeddings()


@pytest.fixture(scope="module")
def bundle() -> Path:
    with as_file(files("graphrag_pipeline") / "bundled" / "static_embeddings") as folder:
        return folder


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("a doctor treated the patient", "the physician saw a sick person", "stock prices fell"),
        ("the company bought a rival firm", "the business acquired a competitor", "a cat slept on the sofa"),
        ("car", "automobile", "banana"),
        ("happy", "joyful", "carburetor"),
        ("Ebenezer Scrooge was a miser", "scrooge hoarded his money", "rain is expected in the north"),
    ],
)
def test_related_texts_are_nearer_than_unrelated_ones(
    embeddings: StaticEmbeddings, text: str, near: str, far: str
) -> None:
    vectors = embeddings.embed([text, near, far])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_unrelated_texts_are_nearly_orthogonal(embeddings: StaticEmbeddings) -> None:
    vectors = embeddings.embed(["a doctor treated the patient", "stock prices fell"])
    assert abs(vectors[0] @ vectors[1]) < 0.2


def test_case_accents_and_word_order_do_not_count(embeddings: StaticEmbeddings) -> None:
    vectors = embeddings.embed(["Dog bites café", "café BITES dog", "cafe dog bites"])
    assert vectors[0].tobytes() == vectors[1].tobytes() == vectors[2].tobytes()


def test_shape_type_and_fingerprint(embeddings: StaticEmbeddings) -> None:
    vectors = embeddings.embed(["one", "two", "three"])
    assert vectors.shape == (3, 256)
    assert vectors.dtype == np.float32
    assert embeddings.dimensions == 256
    assert re.fullmatch(r"static:all-MiniLM-L6-v2:256:[0-9a-f]{12}", embeddings.fingerprint)


def test_no_texts_give_no_rows(embeddings: StaticEmbeddings) -> None:
    vectors = embeddings.embed([])
    assert vectors.shape == (0, 256)
    assert vectors.dtype == np.float32


def test_one_string_instead_of_a_sequence_is_refused(embeddings: StaticEmbeddings) -> None:
    with pytest.raises(TypeError, match="sequence of strings"):
        embeddings.embed("a doctor")


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\ud800", "😀", "!!!", "x" * 101, "\x01\x02", "\ufffd"])
def test_text_without_a_known_word_piece_has_the_zero_vector(embeddings: StaticEmbeddings, text: str) -> None:
    vectors = embeddings.embed([text, "doctor"])
    assert not vectors[0].any()
    assert vectors[1].any()


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("doc\0tor", "doctor"),
        ("doc\ud800tor", "doctor"),
        ("doctor\udc00", "doctor"),
        ("\ud800", ""),
        ("the doctor \ud83d\ude00", "the doctor 😀"),
        ("the doctor 😀", "the doctor"),
        ("the doctor\u3000came", "the doctor came"),
    ],
)
def test_characters_that_do_not_count(embeddings: StaticEmbeddings, text: str, same_as: str) -> None:
    vectors = embeddings.embed([text, same_as])
    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_a_surrogate_pair_counts_as_its_character(embeddings: StaticEmbeddings) -> None:
    vectors = embeddings.embed(["\ud835\udc1d\ud835\udc28\ud835\udc1c", "\U0001d41d\U0001d428\U0001d41c"])
    assert vectors[0].tobytes() == vectors[1].tobytes()


def test_chinese_characters_count(embeddings: StaticEmbeddings) -> None:
    assert np.linalg.norm(embeddings.embed(["北京大学"])[0]) == pytest.approx(1, abs=1e-6)


def test_markup_of_the_tokenizer_is_plain_text(embeddings: StaticEmbeddings) -> None:
    vectors = embeddings.embed(["[UNK]", "[PAD]", "[ pad ]"])
    assert vectors[0].any()
    assert vectors[1].tobytes() == vectors[2].tobytes()


def test_nothing_is_cut_off(embeddings: StaticEmbeddings) -> None:
    start = "the doctor came " * 300
    vectors = embeddings.embed([start, start + "stock prices fell " * 300])
    assert vectors[0] @ vectors[1] < 0.95


@pytest.mark.parametrize("unit", ["the doctor came. ", "中文字", "x", "😀 ", "! ", "\0a", "e\u0301"])
def test_a_text_of_a_megabyte_is_embedded(embeddings: StaticEmbeddings, unit: str) -> None:
    text = (unit * (1_000_000 // len(unit.encode()) + 1))[:1_000_000]
    vectors = embeddings.embed([text, "doctor"])
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-6) or not vectors[0].any()
    assert vectors[1].tobytes() == embeddings.embed(["doctor"])[0].tobytes()


def test_repeating_a_text_does_not_change_its_vector(embeddings: StaticEmbeddings) -> None:
    sentence = "the doctor came by train "
    vectors = embeddings.embed([sentence, sentence * 40_000])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


@given(st.lists(ANY_TEXT, max_size=12), st.integers(0, 12))
def test_a_vector_depends_on_its_own_text_alone(texts: list[str], rotation: int) -> None:
    embeddings = load_static_embeddings()
    together = embeddings.embed(texts)
    alone = [embeddings.embed([text])[0] for text in texts]
    rotated = embeddings.embed(texts[rotation:] + texts[:rotation])
    assert together.tobytes() == b"".join(vector.tobytes() for vector in alone)
    assert sorted(row.tobytes() for row in together) == sorted(row.tobytes() for row in rotated)


@given(
    st.lists(ANY_TEXT, min_size=1, max_size=6), st.sampled_from([" ", "\n", " \n", "\t", "\x1c", "\u0301", "\u3000"])
)
def test_pieces_read_word_by_word_are_those_of_the_whole_text(texts: list[str], separator: str) -> None:
    embeddings = load_static_embeddings()
    text = static_embeddings._replace_lone_surrogates(separator.join(texts))
    whole = embeddings._tokenizer.encode(text, add_special_tokens=False).ids
    assert list(embeddings._read_pieces([text])) == [whole]


def test_forgetting_words_does_not_change_vectors(
    embeddings: StaticEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"doctor number {i} came by train" for i in range(30)]
    expected = embeddings.embed(texts)
    monkeypatch.setattr(static_embeddings, "MAX_KNOWN_WORDS", 10)
    monkeypatch.setattr(static_embeddings, "MAX_BATCH_TEXTS", 4)
    monkeypatch.setattr(static_embeddings, "MAX_KNOWN_LENGTH", 5)
    assert embeddings.embed(texts).tobytes() == expected.tobytes()


@given(ANY_TEXT)
def test_every_vector_has_length_one_or_is_zero(text: str) -> None:
    vector = load_static_embeddings().embed([text])[0]
    assert not vector.any() or np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("max_texts", "max_chars", "max_rows"), [(1, 10, 1), (3, 7, 2), (1_000, 500_000, 65_536)])
def test_batch_limits_do_not_change_vectors(
    embeddings: StaticEmbeddings, monkeypatch: pytest.MonkeyPatch, max_texts: int, max_chars: int, max_rows: int
) -> None:
    texts = ["one", "", "the doctor came by train", "two three", "", "stock prices fell"]
    expected = embeddings.embed(texts)
    monkeypatch.setattr(static_embeddings, "MAX_BATCH_TEXTS", max_texts)
    monkeypatch.setattr(static_embeddings, "MAX_BATCH_CHARS", max_chars)
    monkeypatch.setattr(static_embeddings, "MAX_ROWS_AT_ONCE", max_rows)
    assert embeddings.embed(texts).tobytes() == expected.tobytes()


def test_threads_share_one_instance(embeddings: StaticEmbeddings) -> None:
    batches = [[f"text {i} about a doctor", "stock prices fell " * (i % 7)] for i in range(200)]
    expected = [embeddings.embed(batch).tobytes() for batch in batches]
    with ThreadPoolExecutor(8) as pool:
        assert [vectors.tobytes() for vectors in pool.map(embeddings.embed, batches)] == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_embeds_without_a_warning_or_a_changed_environment() -> None:
    program = """
import os
from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
before = dict(os.environ)
texts = ["the doctor came by train"] * 50
expected = load_static_embeddings().embed(texts).tobytes()
child = os.fork()
same = load_static_embeddings().embed(texts).tobytes() == expected and dict(os.environ) == before
if child == 0:
    os._exit(0 if same else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and same
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]  # Python 3.12 warns of any fork
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_the_module_imports_nothing_heavy() -> None:
    program = """
import sys, graphrag_pipeline.engines.embedded.static_embeddings
print(sorted({"numpy", "tokenizers", "safetensors", "model2vec", "torch"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_loading_twice_gives_one_instance() -> None:
    assert load_static_embeddings() is load_static_embeddings()


def test_model2vec_reads_the_same_vectors_from_the_bundled_files(embeddings: StaticEmbeddings, bundle: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    texts = ["a doctor treated the patient", "stock prices fell 3.5 %", "Ebenezer Scrooge " * 400, "", "北京 😀 naïve"]
    theirs = model2vec.StaticModel.from_pretrained(bundle).encode(texts)
    np.testing.assert_allclose(embeddings.embed(texts), theirs, atol=1e-6)


def test_the_bundle_is_small_enough(bundle: Path) -> None:
    assert sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file()) <= MAX_BUNDLE_BYTES


def test_the_bundle_carries_its_licence_and_notice(bundle: Path) -> None:
    assert "Apache License" in (bundle / "LICENSE").read_text(encoding="utf-8")
    assert "all-MiniLM-L6-v2" in (bundle / "NOTICE").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_provenance_names_the_hash_of_each_file(bundle: Path, name: str) -> None:
    provenance = (bundle / "PROVENANCE.md").read_text(encoding="utf-8")
    (recorded,) = re.findall(rf"\| `{re.escape(name)}` \| \d+ \| `([0-9a-f]{{64}})` \|", provenance)
    assert recorded == hashlib.sha256((bundle / name).read_bytes()).hexdigest()


def test_provenance_and_script_name_the_same_source(bundle: Path) -> None:
    provenance = (bundle / "PROVENANCE.md").read_text(encoding="utf-8")
    script = (bundle / "distill.py").read_text(encoding="utf-8")
    source_hashes = re.findall(r"[0-9a-f]{64}", script)
    assert source_hashes[0] == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert all(source_hash in provenance for source_hash in source_hashes)


def test_fingerprint_is_the_hash_of_the_files(embeddings: StaticEmbeddings, bundle: Path) -> None:
    content = (bundle / "model.safetensors").read_bytes() + (bundle / "tokenizer.json").read_bytes()
    assert embeddings.fingerprint.rpartition(":")[2] == hashlib.sha256(content).hexdigest()[:12]
