import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document


def titles(text: str) -> dict[str, str]:
    """Return title -> type of the entities of a document without a title."""
    return {o.title: o.type for sentence in read_document("", text)[0] for o in sentence.occurrences}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The machine must comply with Directive 2006/42/EC in all respects.", "DIRECTIVE 2006/42/EC"),
        ("The duty under Council Regulation (EC) No 1/2003 remains.", "REGULATION (EC) NO 1/2003"),
        ("Drones fall within Regulation (EU) 2018/1139 already.", "REGULATION (EU) 2018/1139"),
        ("It was changed by Executive Order 12866 of the president.", "EXECUTIVE ORDER 12866"),
        ("It was required by House Bill 1337 last year.", "HOUSE BILL 1337"),
        ("The programme was created by Public Law 104-191 then.", "PUBLIC LAW 104-191"),
        ("The Companies Act 2006 applies to the firm.", "COMPANIES ACT 2006"),
        ("See section 3 of the Housing (Standards) Act 2004 for details.", "HOUSING (STANDARDS) ACT 2004"),
        (
            "An appeal lies under the Tribunals, Courts and Enforcement Act 2007 only.",
            "TRIBUNALS, COURTS AND ENFORCEMENT ACT 2007",
        ),
        ("It was ended by the Civil Rights Act of 1964 at last.", "CIVIL RIGHTS ACT OF 1964"),
    ],
)
def test_an_act_is_one_term_with_its_number_or_year(text: str, title: str) -> None:
    found = titles(text)
    assert found[title] == "CONCEPT"
    assert not {other for other in found if other != title and set(other.split()) & set(title.split())}


def test_the_head_alone_stands_for_the_only_act_with_it() -> None:
    text = (
        "REGULATION (EU) 2031/417\n\nThis Regulation amends Directive 2006/42/EC. The Directive remains in force. "
        "This Regulation applies at once. It does not affect Regulation (EU) 2018/1139."
    )
    assert set(titles(text)) == {"REGULATION (EU) 2031/417", "DIRECTIVE 2006/42/EC", "REGULATION (EU) 2018/1139"}


def test_an_act_without_its_year_is_the_one_with_it() -> None:
    found = titles("The firm obeys the Companies Act 2006. A court read the Companies Act in another way.")
    assert set(found) == {"COMPANIES ACT 2006"}


@pytest.mark.parametrize(
    "text", ["Order 12 boxes of paper.", "In 2004 the Act began.", "Act 3 begins.", "He put Order 66 into effect."]
)
def test_other_numbers_make_no_act(text: str) -> None:
    assert not any(any(letter.isdigit() for letter in title) for title in titles(text))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "We asked the European Economic and Social Committee for an opinion.",
            "EUROPEAN ECONOMIC AND SOCIAL COMMITTEE",
        ),
        ("The drug was approved by the Food and Drug Administration.", "FOOD AND DRUG ADMINISTRATION"),
        ("The Competition and Markets Authority may object.", "COMPETITION AND MARKETS AUTHORITY"),
        ("They asked the Office for National Statistics about it.", "OFFICE FOR NATIONAL STATISTICS"),
    ],
)
def test_an_institution_is_one_name(text: str, title: str) -> None:
    assert titles(text) == {title: "ORGANIZATION"}


def test_two_institutions_stay_two_names() -> None:
    assert "SENATE AND DEFENSE COMMITTEE" not in titles("He spoke to the Senate and Defense Committee. The Senate met.")
    assert "FBI AND JUSTICE BUREAU" not in titles("He wrote to the FBI and Justice Bureau again.")


def test_an_organization_at_the_end_is_not_the_type() -> None:
    found = titles(
        "It was published in the Official Journal of the European Union. Member States must obey the treaty."
    )
    assert found["OFFICIAL JOURNAL OF THE EUROPEAN UNION"] != "ORGANIZATION"
    assert found["MEMBER STATES"] != "GEO"
