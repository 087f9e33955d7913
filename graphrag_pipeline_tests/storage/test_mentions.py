from graphrag_pipeline.storage.mentions import find_names
from graphrag_pipeline_tests.support.corpora import small_index


def test_names_are_found_as_whole_words_the_longest_of_a_place():
    text = "Bob Cratchit and Bobby met Bob."
    assert [text[start:end] for start, end in find_names(text, ["Bob", "Bob Cratchit"])] == ["Bob Cratchit", "Bob"]
    assert find_names("薰儿看见萧炎了", ["萧炎"]) == [(4, 6)]
    assert find_names("nobody", ["", "Bob"]) == []


def test_every_text_unit_of_an_entity_is_an_edge_with_its_places(tmp_path):
    snapshot = small_index.freeze(tmp_path)
    mentions = snapshot.mentions
    titles = snapshot.table("entities")["title"].to_pylist()
    texts = snapshot.table("text_units")["text"].to_pylist()
    found = {}
    for edge, (unit, entity) in enumerate(zip(mentions.text_units, mentions.entities, strict=True)):
        places = range(mentions.places_indptr[edge], mentions.places_indptr[edge + 1])
        found[texts[unit].split()[0], titles[entity]] = [
            texts[unit][mentions.starts[place] : mentions.ends[place]] for place in places
        ]
    assert found["Scrooge", "BOB CRATCHIT"] == ["Bob Cratchit", "Bob Cratchit"]
    assert found["Marley", "SCROOGE"] == ["Scrooge"]
    assert len(found) == sum(map(len, small_index.UNITS_OF.values()))
    assert not mentions.is_about.any()


def test_a_text_unit_is_about_the_entity_that_its_document_is_titled_by(tmp_path):
    tables = small_index.contract_tables()
    documents = tables["documents"]
    titles = ["Scrooge" if title == "b.txt" else title for title in documents["title"].to_pylist()]
    place = documents.column_names.index("title")
    snapshot = small_index.freeze(tmp_path, {**tables, "documents": documents.set_column(place, "title", [titles])})
    mentions = snapshot.mentions
    entity = int(snapshot.rows_of("entities", ["SCROOGE"], "title")[0])
    about = mentions.about_edges[mentions.about_indptr[entity] : mentions.about_indptr[entity + 1]]
    [unit] = mentions.text_units[about].tolist()
    assert snapshot.take("text_units", [unit], ["text"])[0]["text"] == small_index.TEXTS["b.txt"]
