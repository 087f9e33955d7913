"""The choice of `make test-changed`."""

from __future__ import annotations

from graphrag_pipeline_tests.support.changed_tests import LAWS, TESTS, choose_tests, imports_of_tests

IMPORTS = {
    f"{TESTS}/storage/test_locks.py": {"graphrag_pipeline/storage/locks.py"},
    f"{TESTS}/support/damage.py": {"graphrag_pipeline/storage/locks.py"},
    f"{TESTS}/test_cli.py": {f"{TESTS}/support/damage.py"},
    f"{TESTS}/test_turns.py": set(),
}


def chosen(*changed: str) -> list[str]:
    return sorted(set(choose_tests(changed, IMPORTS)) - set(LAWS))


def test_a_change_chooses_its_folder_and_the_tests_that_import_it_also_through_support() -> None:
    assert chosen("graphrag_pipeline/storage/locks.py") == [f"{TESTS}/storage", f"{TESTS}/test_cli.py"]
    assert chosen("graphrag_pipeline/turns.py") == [f"{TESTS}/test_turns.py"]
    assert chosen(f"{TESTS}/support/damage.py") == [f"{TESTS}/test_cli.py"]
    assert chosen(f"{TESTS}/query/conftest.py") == [f"{TESTS}/query"]
    assert chosen("docs/index.md") == []


def test_the_laws_are_always_chosen_and_imports_are_those_of_the_files() -> None:
    assert set(LAWS) <= set(choose_tests([], {}))
    assert f"{TESTS}/support/changed_tests.py" in imports_of_tests()[f"{TESTS}/test_changed_tests.py"]
