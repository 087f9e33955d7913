from graphrag_pipeline.indexing.extraction.names.japanese import find_japanese_names


def test_japanese_names_are_found_by_forms_of_address_endings_and_script() -> None:
    text = (
        "山田さんは東京都に住んでいる。山田は毎朝、横浜市の会社へ行く。佐藤氏は早稲田大学の教授だ。"
        "アルベルト・アインシュタインは日本を訪れた。お母さんはコーヒーを飲んだ。"
    )
    names, types = find_japanese_names(text, [0])
    assert types == {
        "山田": "PERSON", "東京都": "GEO", "横浜市": "GEO", "佐藤": "PERSON", "早稲田大学": "ORGANIZATION",
        "アルベルト・アインシュタイン": "PERSON", "日本": "GEO",
    }  # fmt: skip
    assert [name.form for name in names].count("山田") == 2
    assert all(text[name.start : name.end] == name.form for name in names)
