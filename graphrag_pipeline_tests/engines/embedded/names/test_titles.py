import pytest

from graphrag_pipeline.engines.embedded.names.titles import DocumentTitle, read_title, spellings_in


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Lilli's Marriage", "", ("Lilli's Marriage", "")),
        ("Beno  Zax (film)", "", ("Beno Zax", "film")),
        ("The Man Who Knew Too Much", "In The Man Who Knew Too Much", ("The Man Who Knew Too Much", "")),
        ("John Ernest, Duke of Saxe-Eisenach", "", ("John Ernest, Duke of Saxe-Eisenach", "")),
        ("Frederick I, Holy Roman Emperor", "", ("Frederick I, Holy Roman Emperor", "")),
        ("Bertha, daughter of Lothair II", "", ("Bertha, daughter of Lothair II", "")),
        ("Khalid al-Habib", "", ("Khalid al-Habib", "")),
        ("Come Dance with Me (song)", "", ("Come Dance with Me", "song")),
        ("Chamomile", "chamomile helps", ("Chamomile", "")),
        ("Prices Will Rise Again", "", None),
        ("Prices rise again", "", None),
        ("stave_1", "stave_1", None),
        ("0042", "", None),
        ("my-notes.v2", "", None),
        ("Report.pdf", "", None),
        ("Notes", "", None),
        ("a/b", "", None),
        ("", "", None),
    ],
)
def test_a_name_is_a_title_and_a_file_stem_or_headline_is_not(title: str, text: str, expected: tuple | None) -> None:
    found = read_title(title, text)
    assert (None if found is None else (found.name, found.qualifier)) == expected


@pytest.mark.parametrize(
    ("qualifier", "expected"),
    [("1950 film", "CONCEPT"), ("American politician", "PERSON"), ("band", "ORGANIZATION"), ("", None)],
)
def test_a_qualifier_gives_the_type(qualifier: str, expected: str | None) -> None:
    assert DocumentTitle("X", "X", qualifier).type == expected


def test_a_title_is_found_in_other_letters_unless_it_is_a_common_word() -> None:
    text = "TIME and Time. Every time, chamomile; CHAMOMILE\nTEA or chamomiles."
    spellings = [spellings_in(DocumentTitle(t, t, ""), text) for t in ("Time", "Chamomile", "Chamomile Tea")]
    assert spellings == [{"TIME", "Time"}, {"chamomile", "CHAMOMILE"}, {"CHAMOMILE TEA"}]
