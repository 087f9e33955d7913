from __future__ import annotations

import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document

MINUTES = "Mrs Ann Hill opened the meeting. Mr Tom Wexford read the letter, and Ms Eve Castell thanked him. "


@pytest.mark.parametrize(
    ("sentence", "title", "expected"),
    [
        ("Coastline Buses would run the route.", "COASTLINE BUSES", "ORGANIZATION"),
        ("The work was completed by Solway Dredging on 22 March.", "SOLWAY DREDGING", "ORGANIZATION"),
        ("The meeting heard that Natural England had objected.", "NATURAL ENGLAND", "ORGANIZATION"),
        ("Then Halcrow Tennant, the consulting engineers, will report.", "HALCROW TENNANT", "ORGANIZATION"),
        ("The auditors, Pell Harcourt, will visit.", "PELL HARCOURT", "ORGANIZATION"),
        ("A crane from Liebherr at a cost of 9 pounds was bought.", "LIEBHERR", "ORGANIZATION"),
        ("He asked Northgate Marine Ltd, and Northgate Marine answered.", "NORTHGATE MARINE", "ORGANIZATION"),
        ("Then Wexford Marine sank near the quay.", "WEXFORD MARINE", "UNKNOWN"),
        ("Tamar Gallery in Plymouth has agreed to that.", "TAMAR GALLERY", "ORGANIZATION"),
        ("Two firms, Saltire Catering and Brambex, have shown interest.", "SALTIRE CATERING", "ORGANIZATION"),
        ("The software from Vantix failed. Then Vantix has promised a repair.", "VANTIX", "ORGANIZATION"),
        ("We met the conservator, Agnieszka Wilk of Northern Conservation Studio.", "AGNIESZKA WILK", "PERSON"),
        ("The backup is held by Ironvault Storage near the quay.", "IRONVAULT STORAGE", "ORGANIZATION"),
        ("The Centre for Port Studies is new.", "CENTRE FOR PORT STUDIES", "ORGANIZATION"),
        ("He asked the Harbour Commissioner's Office again.", "HARBOUR COMMISSIONER'S OFFICE", "ORGANIZATION"),
        ("Elmet Learning provides the tests.", "ELMET LEARNING", "ORGANIZATION"),
        ("The survey is by Rook Hadley, the school's architects.", "ROOK HADLEY", "ORGANIZATION"),
        ("The Diocese of Sheffield paid for it.", "DIOCESE OF SHEFFIELD", "ORGANIZATION"),
        ("Mr Tom Wexford thanked Ottoline Firth of the Friends of Thornley Vale.", "OTTOLINE FIRTH", "PERSON"),
        ("It will be held in St Oswin's Hall again.", "ST OSWIN'S HALL", "GEO"),
        ("They bring visitors from Zornsley. The visitors from Zornsley left.", "ZORNSLEY", "GEO"),
        ("She wrote to Alun Harker MP again.", "ALUN HARKER", "PERSON"),
        ("The paper is by the Director of Finance of the town.", "DIRECTOR OF FINANCE", "PERSON"),
        ("We heard Zorbin Brakka (Director of Works) there.", "ZORBIN BRAKKA", "PERSON"),
        ("They met in the Council Chamber again.", "COUNCIL CHAMBER", "GEO"),
        ("The Port Ellery Regatta will take place.", "PORT ELLERY REGATTA", "EVENT"),
        ("They saw the state copper miner Zelquo there.", "ZELQUO", "ORGANIZATION"),
        ("It sued drug distributor Brakka Mund there.", "BRAKKA MUND", "ORGANIZATION"),
        ("Then Zelquo analyst Ann Hill wept.", "ZELQUO", "ORGANIZATION"),
        ("They saw Zelquo, a unit of Brambex, there.", "ZELQUO", "ORGANIZATION"),
        ("A report that QVX Ost asked for came.", "QVX OST", "ORGANIZATION"),
        ("It is based in Zelquo Alto there.", "ZELQUO ALTO", "GEO"),
        ("The inquiry, Operation Thistle, is over.", "OPERATION THISTLE", "CONCEPT"),
        ("The MV Santa Brakka sank.", "MV SANTA BRAKKA", "CONCEPT"),
        ("It wrote to the Commission on Lost Rivers.", "COMMISSION ON LOST RIVERS", "ORGANIZATION"),
        ("They met Ann Hill, 34, of Zelquo-on-Sea, there.", "ZELQUO-ON-SEA", "GEO"),
        ("They were taken to Zel Quo hospital there.", "ZEL QUO", "ORGANIZATION"),
        ("It fell into the rivers Brakka and Zelquo there.", "ZELQUO", "GEO"),
        ("Its works at Brakka and Zelquo failed.", "BRAKKA", "GEO"),
        ("Zelwa Orrik of River Watch Ostley said so.", "ZELWA ORRIK", "PERSON"),
        ("They met at Zelquo Court again.", "ZELQUO COURT", "GEO"),
        ("Moody's cut its rating.", "MOODY'S", "ORGANIZATION"),
        ("The U.S. Zoological Survey came.", "U.S. ZOOLOGICAL SURVEY", "ORGANIZATION"),
        ("The Coast Guard came.", "COAST GUARD", "ORGANIZATION"),
        ("They thanked Quellwatch Ostley for its survey.", "QUELLWATCH OSTLEY", "ORGANIZATION"),
        ("The Shukan Brakka said so.", "SHUKAN BRAKKA", "ORGANIZATION"),
        ("Rivals such as Brambex and Zelquo won.", "ZELQUO", "ORGANIZATION"),
        ("Ann Hill, head of research at Zelquo, wept.", "ZELQUO", "ORGANIZATION"),
        ("It fell 28 kilometres southwest of Zelquo.", "ZELQUO", "GEO"),
        ("The 17-year-old from Zelquo won.", "ZELQUO", "GEO"),
        ("He went home to Zelquo.", "ZELQUO", "GEO"),
        ("A fire in Zelquo Nacional was put out.", "ZELQUO NACIONAL", "GEO"),
        ("The Rotary Club of Brakkaport paid.", "ROTARY CLUB OF BRAKKAPORT", "ORGANIZATION"),
        ("Its head, Zelwa Orrik, wept.", "ZELWA ORRIK", "PERSON"),
        ("We say that the Vice-Chair agreed to that.", "VICE-CHAIR", "PERSON"),
    ],
)
def test_actors_have_the_type_that_the_text_shows(sentence: str, title: str, expected: str) -> None:
    assert types_of(MINUTES + sentence)[title] == expected


def test_a_surname_with_an_honorific_types_and_joins_the_full_name() -> None:
    found = types_of("We met Dev Banerjee. Mr Banerjee presented a paper. Mr Banerjee left.")
    assert found == {"DEV BANERJEE": "PERSON"}


def test_a_surname_that_acts_is_no_organization() -> None:
    found = types_of(MINUTES + "Zorbin Hunebelle planned it. We say that Hunebelle refused.")
    assert "ORGANIZATION" not in found.values()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('A "Major Component" is a part. It ships with that Major Component.', "MAJOR COMPONENT"),
        ("It is excluded as a System Library here. The work has System Libraries.", "SYSTEM LIBRARY"),
        ("The code is installed in ROM by us.", "ROM"),
        ("The Allan deviation grows, and the Allan intercept falls.", "ALLAN"),
    ],
)
def test_terms_with_the_words_of_a_name_are_terms(text: str, title: str) -> None:
    assert types_of(text)[title] == "CONCEPT"


def types_of(text: str) -> dict[str, str]:
    sentences = read_document("minutes", text)[0]
    return {occurrence.title: occurrence.type for sentence in sentences for occurrence in sentence.occurrences}
