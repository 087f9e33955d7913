from graphrag_pipeline.engines.embedded.names.japanese import find_japanese_names


def test_japanese_names_are_found_by_forms_of_address_endings_and_script() -> None:
    text = (
        "山田さんは東京都に住んでいる。山田は毎朝、横浜市の会社へ行く。佐藤氏は早稲田大学の教授だ。"
        "アルベルト・アインシュタインは日本を訪れた。お母さんはコーヒーを飲んだ。"
    )
    found = {text[start:end]: kind for start, end, kind in find_japanese_names(text)}
    assert found.pop("東京") == "GEO"  # inside 東京都
    assert found == {
        "山田": "PERSON", "東京都": "GEO", "横浜市": "GEO", "佐藤": "PERSON", "早稲田大学": "ORGANIZATION",
        "アルベルト・アインシュタイン": "PERSON", "日本": "GEO",
    }  # fmt: skip
