import pytest
import regex

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.name_types import (
    type_names,
    vote_types,
)
from graphrag_pipeline.indexing.extraction.names.types.term_types import type_terms
from graphrag_pipeline.indexing.extraction.names.types.word_types import type_by_words


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("Mr. Scrooge", "PERSON"),
        ("Harbour Master", "PERSON"),
        ("Duchy of Teska", "ORGANIZATION"),
        ("Teskamuseum", "ORGANIZATION"),
        ("Storm Bay", "GEO"),
        ("Port Marine Safety Code", "CONCEPT"),
        ("Club for Growth", "ORGANIZATION"),
        ("Jukes and Son", "ORGANIZATION"),
        ("Task Master", None),
        ("St. Mary's", "GEO"),
        ("Royal Infirmary", "ORGANIZATION"),
        ("Norbury Shipping", "ORGANIZATION"),
        ("Covered Shipping", None),
        ("International Working Group on the Diabetic Foot", "ORGANIZATION"),
        ("Committee on Climate Change", "ORGANIZATION"),
        ("House on Fire", None),
        ("Health and Safety Executive", "ORGANIZATION"),
        ("Gull Point", "GEO"),
        ("Focal Point", None),
        ("Sir John", "PERSON"),
        ("Campaign to Protect Rural England", "ORGANIZATION"),
        ("Whit Sunday", "EVENT"),
        ("Saint Louis", None),
        ("St Wilfrid's Church", "GEO"),
        ("Market Place", "GEO"),
        ("Liberal Democrats", "ORGANIZATION"),
        ("Messrs Hardy", "ORGANIZATION"),
        ("Osama bin Laden", "PERSON"),
        ("Federal Government", "ORGANIZATION"),
        ("West Bank", "GEO"),
        ("Labour", "ORGANIZATION"),
        ("Al Qaeda", "ORGANIZATION"),
        ("al-Qa'ida", "ORGANIZATION"),
        ("Abu Tessim", "PERSON"),
        ("Abu Dhabi", None),
        ("Democrats", "ORGANIZATION"),
        ("Houston Texans", None),
        ("Teska Stock Exchange", "ORGANIZATION"),
        ("Nobel Peace Prize", "CONCEPT"),
        ("Justice Elena Park", "PERSON"),
        ("Ms Windsor", "PERSON"),
        ("MS Windows", "CONCEPT"),
        ("Senator Hill", "PERSON"),
        ("Queen Street", "GEO"),
        ("Anglican Archbishop", "PERSON"),
        ("Christmas Island", "GEO"),
        ("Tanyard Close", "GEO"),
        ("Christianity", "CONCEPT"),
        ("Jainism", "CONCEPT"),
        ("Israelis", "PERSON"),
        ("South Africans", "PERSON"),
        ("Duke of Madrid", "PERSON"),
        ("Queen of the South", None),
        ("Adalbert II of Tuscany", "PERSON"),
        ("Joan of Arc", "PERSON"),
        ("Roman Catholic Diocese of Bunia", "ORGANIZATION"),
        ("Pender's Jewellers", "ORGANIZATION"),
        ("Kirkby Gazette", "ORGANIZATION"),
        ("Kirkby Neighbourhood Plan", "CONCEPT"),
        ("Network Time Protocol", "CONCEPT"),
        ("solid-state drive", None),
        ("Harvest Show", "EVENT"),
        ("Annual General Meeting", "EVENT"),
        ("Fish Quay", "GEO"),
        ("Scrooge's nephew", "PERSON"),
        ("Scrooge's office", "GEO"),
        ("Goldman Sachs Group", "ORGANIZATION"),
        ("Bank of England", "ORGANIZATION"),
        ("Johnson & Johnson", "ORGANIZATION"),
        ("Camden Town", "GEO"),
        ("Sound of Islay", "GEO"),
        ("Instituto Boreal", "ORGANIZATION"),
        ("Ostbahn", "ORGANIZATION"),
        ("Torquay Rovers", "ORGANIZATION"),
        ("Mount Etna", "GEO"),
        ("Battle of Hastings", "EVENT"),
        ("Christmas Eve", "EVENT"),
        ("25 December 1843", "EVENT"),
        ("World War II", "EVENT"),
        ("3. März 2023", "EVENT"),
        ("14 juillet 2022", "EVENT"),
        ("5 de mayo de 2021", "EVENT"),
        ("J. R. R. Tolkien", "PERSON"),
        ("U. S. Steel", None),
        ("L. Abeni", "PERSON"),
        ("S. Korea", None),
        ("Client Port", None),
        ("London Bridge", "GEO"),
        ("Ship Inn", "GEO"),
        ("Covered Software", None),
        ("General Public License", None),
        ("General Smith", "PERSON"),
        ("Gandalf the Grey", "PERSON"),
        ("Sra. López", "PERSON"),
        ("Vivendi S.A.", "ORGANIZATION"),
        ("Enel S.p.A.", "ORGANIZATION"),
        ("Müller GmbH & Co. KG", "ORGANIZATION"),
        ("Scrooge", None),
    ],
)
def test_words_give_the_type(form: str, expected: str | None) -> None:
    assert type_by_words(form) == expected


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("London", "London", "GEO"),
        ("in Cornhill", "Cornhill", "GEO"),
        ("said Scrooge", "Scrooge", "PERSON"),
        ("Topper said", "Topper", "PERSON"),
        ("Topper's hand", "Topper", "PERSON"),
        ("Topper's house", "Topper", "UNKNOWN"),
        ("Belinda Cratchit", "Belinda Cratchit", "PERSON"),
        ("The ferry Lady Rosamund sailed", "Lady Rosamund", "CONCEPT"),
        ("three points behind Gillingham", "Gillingham", "ORGANIZATION"),
        ("the captain of Ukraine", "Ukraine", "GEO"),
        ("NASA", "NASA", "ORGANIZATION"),
        ("WHO said", "WHO", "ORGANIZATION"),
        ("The CT scan", "CT", "CONCEPT"),
        ("an MRI of the brain", "MRI", "CONCEPT"),
        ("in UTF-8", "UTF-8", "UNKNOWN"),
        ("Idol", "Idol", "UNKNOWN"),
        ("Alberta (formerly a district) is a western province of Canada", "Alberta", "GEO"),
        ("A senior Tarvol leader said", "Tarvol", "ORGANIZATION"),
        ("the F-16 fighter", "F-16", "UNKNOWN"),
        ("said Ann Hill", "Ann Hill", "PERSON"),
        ("The Louvrac will lend it", "Louvrac", "ORGANIZATION"),
        ("The Integrated Bar of the Philippines said so", "Integrated Bar of the Philippines", "ORGANIZATION"),
        ("The Sertus meet Benin", "Sertus", "ORGANIZATION"),
        ("an underpass beneath the A737", "A737", "GEO"),
        ("at the Azal Hotel", "Azal Hotel", "GEO"),
        ("They danced a piece by Crissal Pitten to music", "Crissal Pitten", "PERSON"),
        ("Ask in Boca Teska, doctors said", "Boca Teska", "GEO"),
        ("CalDan said so", "CalDan", "ORGANIZATION"),
        ("MacBarton said so", "MacBarton", "PERSON"),
        ("It has the Community Shares Standard Mark", "Community Shares Standard Mark", "UNKNOWN"),
        ("The member for the county, Kim Masland, said so", "Kim Masland", "PERSON"),
        ("Former cutter Adela Prynne, who left", "Adela Prynne", "PERSON"),
        ("It is turned on a lathe in Hereford", "Hereford", "GEO"),
        ("It was Tarlow Mayor Teddy Hill", "Tarlow", "GEO"),
        ("The Wallenbergs asked for it", "Wallenbergs", "PERSON"),
        ("He says Tingomba could yield more", "Tingomba", "UNKNOWN"),
        ("the valley of the Alaknar", "Alaknar", "GEO"),
        ("a camp near Ann Hill", "Ann Hill", "GEO"),
        ("Ann Park", "Ann Park", "GEO"),
        ("the series New South Wales won", "New South Wales", "GEO"),
        ("the UN draft", "UN", "ORGANIZATION"),
        ("her novel The Salt Road won", "Salt Road", "CONCEPT"),
        ("complained to Ofgem", "Ofgem", "ORGANIZATION"),
        ("Elizabeth", "Elizabeth", "PERSON"),
    ],
)
def test_context_and_gazetteer_give_the_type(text: str, form: str, expected: str) -> None:
    start = text.index(form)
    assert type_names([Name(form, start, start + len(form), 0)], text) == {form: expected}


def test_siblings_of_a_person_are_persons() -> None:
    text = "Ghost of Christmas Past said so. Ghost of Christmas Present came. House of Cards fell."
    forms = ("Ghost of Christmas Past", "Ghost of Christmas Present")
    names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in forms]
    assert set(type_names(names, text).values()) == {"PERSON"}


def test_votes_go_by_frequency_and_unknown_loses() -> None:
    types = {"Marley": "UNKNOWN", "Mr. Marley": "PERSON"}
    names = [Name("Marley", 0, 6, 0)] * 3 + [Name("Mr. Marley", 7, 17, 0)]
    assert vote_types(names, types, {"Marley": "Marley", "Mr. Marley": "Marley"}) == {"Marley": "PERSON"}


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("The Gleason score is high.", "Gleason", "CONCEPT"),
        ("See the Licensor. The Licensor grants it.", "Licensor", "CONCEPT"),
        ("A Derivative Work shall mean any work.", "Derivative Work", "CONCEPT"),
        ("It raises a TypeError at once.", "TypeError", "CONCEPT"),
        ("It is in HER2 and more.", "HER2", "CONCEPT"),
        ("We met Topper there.", "Topperton", "UNKNOWN"),
        ("We met McDonald there.", "McDonald", "UNKNOWN"),
    ],
)
def test_a_name_without_a_type_is_a_term_if_its_form_or_its_use_says_so(text: str, form: str, expected: str) -> None:
    places = [place for place in range(len(text)) if text.startswith(form, place)]
    names = [Name(form, place, place + len(form), 0) for place in places or [0]]
    assert type_terms(names, {form: "UNKNOWN"}, {form: form}, text) == {form: expected}


def test_where_persons_lead_a_common_word_may_name_one() -> None:
    text = "Scrooge feared the Phantom. The Phantom pointed. Scrooge knelt."
    names = [
        Name("Scrooge", 0, 7, 0),
        Name("Phantom", 19, 26, 0),
        Name("Phantom", 32, 39, 1),
        Name("Scrooge", 49, 56, 2),
    ]
    types = {"Scrooge": "PERSON", "Phantom": "UNKNOWN"}
    assert type_terms(names, types, {form: form for form in types}, text) == types


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("Veridian Semiconductor said so.", "Veridian Semiconductor", "ORGANIZATION"),
        ("Army Corps of Engineers", "Army Corps of Engineers", "ORGANIZATION"),
        ("Shares of Veridian fell.", "Veridian", "ORGANIZATION"),
        ("It is made by Biomarca.", "Biomarca", "ORGANIZATION"),
        ("Analysts at Goldman Sachs doubt it.", "Goldman Sachs", "ORGANIZATION"),
        ("the insurer Gjensidige", "Gjensidige", "ORGANIZATION"),
        ("The Mombasa Lions won.", "Mombasa Lions", "ORGANIZATION"),
        ("The Phantom said so.", "Phantom", "PERSON"),
        ("Storm Ingrid", "Storm Ingrid", "EVENT"),
        ("They beat the Kisumu Rovers.", "Kisumu Rovers", "ORGANIZATION"),
        ("the insurer Gjensidige said", "Gjensidige", "ORGANIZATION"),
        ("in Exhibit B", "Exhibit B", "UNKNOWN"),
    ],
)
def test_companies_clubs_and_storms_are_no_persons(text: str, form: str, expected: str) -> None:
    start = text.index(form)
    assert type_names([Name(form, start, start + len(form), 0)], text)[form] == expected


def test_the_last_word_of_a_name_has_its_type() -> None:
    text = "Fatuma Hassan left. Hassan knew. The Mombasa Lions won. We like the Lions."
    forms = {"Fatuma Hassan": "PERSON", "Hassan": "PERSON", "Mombasa Lions": "ORGANIZATION", "Lions": "ORGANIZATION"}
    places = [text.index("Fatuma"), text.index("Hassan knew"), text.index("Mombasa"), text.rindex("Lions")]
    names = [Name(form, place, place + len(form), 0) for form, place in zip(forms, places, strict=True)]
    assert type_names(names, text) == forms


def test_names_that_people_go_to_are_places_in_a_story() -> None:
    text = "Mary Smith said no at Cadgwith. John Smith went from Cadgwith to Truro. Mary Smith saw Truro."
    types = type_names(_occurrences(text, "Mary Smith", "John Smith", "Cadgwith", "Truro"), text)
    assert (types["Cadgwith"], types["Truro"]) == ("GEO", "GEO")
    text = "The Zork reads it at Cadgwith. The Gnusto and the Frotz run. Zork stops."
    assert type_names(_occurrences(text, "Zork", "Cadgwith", "Gnusto", "Frotz"), text)["Cadgwith"] == "UNKNOWN"


def test_a_full_name_with_a_family_name_or_given_name_of_a_person_is_a_person() -> None:
    text = (
        "Mr. Zorn came. Rebekka Zorn left. Luise Falk sat. 'No,' said Luise. 'Yes,' said Luise. Luise Street is long."
    )
    types = type_names(_occurrences(text, "Mr. Zorn", "Rebekka Zorn", "Luise Falk", "Luise", "Luise Street"), text)
    assert {form for form, kind in types.items() if kind == "PERSON"} >= {"Rebekka Zorn", "Luise Falk"}
    assert types["Luise Street"] == "GEO"


def test_a_body_of_people_is_an_organization() -> None:
    text = "They saw the Board there. The Board agreed. The Frotz agreed."
    names = _occurrences(text, "Board", "Frotz")
    links = {"Board": "Board", "Frotz": "Frotz"}
    assert type_terms(names, dict.fromkeys(links, "UNKNOWN"), links, text)["Board"] == "ORGANIZATION"


def test_an_acronym_that_mostly_describes_nouns_is_a_term() -> None:
    text = "The KSM daemon ran. Each KSM page is new. KSM said no. The KSM scan is slow."
    assert type_names(_occurrences(text, "KSM"), text)["KSM"] == "CONCEPT"


def _occurrences(text: str, *forms: str) -> list[Name]:
    found = [Name(form, m.start(), m.end(), 0) for form in forms for m in regex.finditer(form, text)]
    return sorted(found, key=lambda name: name.start)


def test_a_building_acts_as_a_body_and_a_ship_is_no_person() -> None:
    text = "Trinity House wrote to Customs House. The Margaret Ellen was lost beside the trawler Silver Tern."
    types = type_names(_occurrences(text, "Trinity House", "Customs House", "Margaret Ellen", "Silver Tern"), text)
    assert types == {
        "Trinity House": "ORGANIZATION",
        "Customs House": "GEO",
        "Margaret Ellen": "CONCEPT",
        "Silver Tern": "CONCEPT",
    }


def test_bodies_of_a_country_and_the_short_names_of_firms_are_organizations() -> None:
    text = (
        "IDA Ireland agreed. Jack London wrote. Upper Austria grew. They saw Cisco ISE. Lumo Sensing Ltd. Lumo is it."
    )
    types = type_names(
        _occurrences(text, "IDA Ireland", "Jack London", "Upper Austria", "Cisco ISE", "Lumo Sensing Ltd", "Lumo"), text
    )
    assert (types["IDA Ireland"], types["Lumo"]) == ("ORGANIZATION", "ORGANIZATION")
    assert types["Jack London"] == "PERSON"
    assert "ORGANIZATION" not in (types["Upper Austria"], types["Cisco ISE"])


def test_a_list_is_read_to_its_end() -> None:
    text = "They met at Grangemouth in Rosyth. The office in Grangemouth, Methil, Burntisland and Inverkeithing closed."
    forms = ("Grangemouth", "Methil", "Burntisland", "Inverkeithing")
    assert set(type_names(_occurrences(text, *forms), text).values()) == {"GEO"}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("Rent Assessment Panel", "ORGANIZATION"),
        ("Assembly of Northmark", "ORGANIZATION"),
        ("Registrar of Tenancies", "PERSON"),
        ("Northern Gastroenterology Network", "ORGANIZATION"),
        ("Royal Infirmary of Calderholm", "ORGANIZATION"),
        ("Information Commissioner", "PERSON"),
        ("Royal Navy", "ORGANIZATION"),
        ("Corran Weir", "GEO"),
        ("Master Services Agreement", None),
        ("Cyclone Yasa", "EVENT"),
    ],
)
def test_the_words_of_bodies_offices_and_sites_say_what_they_are(form: str, expected: str | None) -> None:
    assert type_by_words(form) == expected


def _types_in(text: str) -> dict[str, str]:
    names = [Name(m.group(), *m.span(), 0) for m in regex.finditer(r"\p{Lu}[\p{L}]+(?: \p{Lu}[\p{L}]+)*", text)]
    return type_names(names, text)


def test_the_verb_behind_the_place_of_a_person_is_not_that_of_the_place() -> None:
    types = _types_in("yesterday the mayor of Zabrod said that it rained. And the people of Zabrod asked for help.")
    assert types["Zabrod"] == "GEO"


def test_a_heading_says_nothing_of_the_name_on_the_next_line() -> None:
    types = _types_in(
        "they close the old plant\n\nHallett Vine will sell its tools. A contract with Hallett Vine ended."
    )
    assert types["Hallett Vine"] == "ORGANIZATION"


def test_words_that_end_the_name_of_a_firm_outweigh_a_verb_of_speaking() -> None:
    types = _types_in("then Pencrith Private Hire asked for more, and Zorbin Hunebelle asked for less.")
    assert (types["Pencrith Private Hire"], types["Zorbin Hunebelle"]) == ("ORGANIZATION", "PERSON")


def test_what_a_review_searches_and_rates_with_is_a_term() -> None:
    types = _types_in(
        "Zentral and Psyvex were searched. Later we searched QUBMED, Zembase and others. "
        "The evidence was rated with GRADE by us."
    )
    assert types["Zentral"] == "CONCEPT"
    assert (types["QUBMED"], types["Zembase"], types["GRADE"]) == ("CONCEPT", "CONCEPT", "CONCEPT")


def test_who_founded_a_firm_is_a_person() -> None:
    types = _types_in("it was founded in 2014 by Kristjol Ojal..")
    assert types["Kristjol Ojal"] == "PERSON"


def test_a_quoted_title_is_a_concept_and_a_side_of_a_rare_word_is_a_place() -> None:
    types = _types_in('He sang in the film "Hum Dil De Chuke" of Teska. The mayor of Medan, North Tessuma, heard it.')
    assert types["Hum Dil De Chuke"] == "CONCEPT"
    assert types["North Tessuma"] == "GEO"


def _type_of(form: str, text: str) -> str:
    names = [Name(other, m.start(), m.end(), 0) for other in (form, "Perrow Inc") for m in regex.finditer(other, text)]
    return type_names(sorted(names, key=lambda name: name.start), text)[form]


def test_a_word_that_says_something_of_itself_or_in_a_report_on_firms_is_a_firm() -> None:
    assert _type_of("Tarvexo", "Tarvexo said it will sell its yard.") == "ORGANIZATION"
    assert _type_of("Tarvexo", "Tarvexo said it was raining.") == "PERSON"
    report = "Shares of Perrow Inc fell, and its stake in a merger, an offer and the profit rose."
    assert _type_of("Tarvexo", f"{report} Tarvexo said no.") == "ORGANIZATION"
    assert _type_of("Tarvexo", "Perrow Inc left. Tarvexo said no.") == "PERSON"


def test_who_has_an_administration_or_an_office_in_capitals_is_a_person() -> None:
    assert _type_of("Tarvexo", "They blamed the Tarvexo administration for it.") == "PERSON"
    assert _type_of("Tarvexo", "It was Chief Executive Tarvexo.") == "PERSON"


def test_a_name_with_a_legal_form_is_an_organization_whatever_its_short_form_is() -> None:
    names = [Name("Perrow", 0, 6, 0), Name("Perrow Inc", 8, 18, 0)]
    types = {"Perrow": "CONCEPT", "Perrow Inc": "ORGANIZATION"}
    links = {"Perrow": "Perrow Inc", "Perrow Inc": "Perrow Inc"}
    assert vote_types([*names, names[0]], types, links) == {"Perrow Inc": "ORGANIZATION"}
