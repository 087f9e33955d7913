from __future__ import annotations

import pytest

from graphrag_pipeline.indexing.extraction.names.forms.plurals import link_term_forms
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def _link(forms: list[str], kind: str = "CONCEPT") -> dict[str, str]:
    names = [Name(form, 10 * n, 10 * n + len(form), n) for n, form in enumerate(forms)]
    return link_term_forms(names, {form: form for form in forms}, dict.fromkeys(forms, kind))


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (["Contribution", "Contributions"], {"Contribution"}),
        (["tag", "Tags"], {"tag"}),
        (["APIs"], {"API"}),
        (["work-flow", "workflow", "workflow"], {"workflow"}),
        (["Back-Cover Text", "Back-Cover Texts"], {"Back-Cover Text"}),
        (["build-depend", *["Build-Depends"] * 5], {"Build-Depends"}),
        (["Part II", "Part III"], {"Part II", "Part III"}),
        (["analysis", "status"], {"analysis", "status"}),
        (["menus", "menu", "metrics", "metric"], {"menu", "metric"}),
        (["config file", "configuration file"], {"configuration file"}),
        (["repos", "repo", "repository"], {"repository"}),
        (["slapd", "slapdaemon", "star", "start"], {"slapd", "slapdaemon", "star", "start"}),
        (["spec", "specification", "specimen"], {"spec", "specification", "specimen"}),
        (["TGT", "ticket granting ticket"], {"ticket granting ticket"}),
        (["ABC", "access block code", "allowed byte count"], {"ABC", "access block code", "allowed byte count"}),
    ],
)
def test_forms_of_one_term_have_one_canonical_form(forms: list[str], expected: set[str]) -> None:
    assert set(_link(forms).values()) == expected


def test_plurals_of_persons_are_other_persons() -> None:
    assert _link(["Cratchit", "Cratchits"], "PERSON") == {"Cratchit": "Cratchit", "Cratchits": "Cratchits"}
