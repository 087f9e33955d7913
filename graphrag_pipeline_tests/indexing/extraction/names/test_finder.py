import pytest

from graphrag_pipeline.indexing.extraction.names.dates import find_dates
from graphrag_pipeline.indexing.extraction.names.finder import find_names
from graphrag_pipeline.indexing.extraction.names.occurrences import include_articles
from graphrag_pipeline.indexing.extraction.names.phrases import is_heading
from graphrag_pipeline.text.sentences import split_sentences


def names_in(text: str) -> list[str]:
    spans = split_sentences(text)
    return [name.form for name in find_names(text, spans, [is_heading(text, *span) for span in spans])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The miser met Scrooge there.", ["Scrooge"]),
        ("The bells of St. Mary's were ringing. Saint Oswald's share a hub. St. Mary's Churchyard is old.",
         ["St. Mary's", "Saint Oswald's", "St. Mary's Churchyard"]),
        ("He wrote to the Ministry of Geology and Seismology.",
         ["Ministry of Geology and Seismology"]),
        ("Quendaville, the county seat, is old. Lunchtime, the clerk slept. Ostarix had sold it.",
         ["Quendaville", "Ostarix"]),
        ("It paid NZ$3 and US$4. In B12.1 she presented paper C. Brakka had fallen, and Professors D Achebe rose.",
         ["Brakka", "Professors D Achebe"]),
        ("They met Mrs D and Zelquo Leaf of the Netherlands. Assistant U.S. Attorney Kevin Brakka rose.",
         ["Zelquo Leaf", "Netherlands", "U.S.", "Kevin Brakka"]),
        ("Economist Khalim Bamdo Diagno of Zelquo Dup University wept. Wing Daniel Brakka saw Louise Bak of Zelbank.",
         ["Khalim Bamdo Diagno", "Zelquo Dup University", "Daniel Brakka", "Louise Bak", "Zelbank"]),
        ("Present: J. Oddie, A. Quartermaine, District Cllr W. Stannage; see ZQNP/24/02118/HOUS Binswood Cottage",
         ["J. Oddie", "A. Quartermaine", "District Cllr W. Stannage", "Binswood Cottage"]),
        ("The Committee to Protect Rivers meets on Wednesdays.", ["Committee to Protect Rivers"]),
        ("They met Det Con Imogen Sharrock, the South African Codi Yusuf and the Dutch Zelwa Orrik.",
         ["Imogen Sharrock", "Codi Yusuf", "Zelwa Orrik"]),
        ("They heard A N Penrose, DCI Ruth Vale and Cmdr. Otto Quill. DCI Vale left.",
         ["A N Penrose", "Ruth Vale", "Cmdr. Otto Quill", "Vale"]),
        ("They took 8 MiB or 3 KiB and 1 GB of RAM.", ["RAM"]),
        ("The trials BEST-CLI, DAMO2CLES and VA INTREPID ended.", ["BEST-CLI", "DAMO2CLES", "VA INTREPID"]),
        ("It uses SHA-256. They saw NXDOMAIN there.", ["SHA-256", "NXDOMAIN"]),
        ("IN NO EVENT SHALL IT BE LIABLE IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, AND ALL THAT.", []),
        ("It wrote to the Health and Safety Executive.", ["Health and Safety Executive"]),
        ("It is under the Apache License Version 2 now.", ["Apache License"]),
        ("Gene expression profiling helps Marley, and GGGGGG, or H-I-J.", ["Marley"]),
        ("Marley sets the area to A.B.C.D here, and A.B.C too.", ["Marley"]),
        ("Marley saw Exhibit B. He saw Article 5 and Annex II.", ["Marley"]),
        ("PL/pgSQL, or PL/pgSQL, is PL/pgSQL.", ["PL/pgSQL", "PL/pgSQL", "PL/pgSQL"]),
        ("He ran Debian GNU/Linux, then Debian GNU/Linux, not Debian GNU/Linux.", ["Debian GNU/Linux"] * 3),
        ("Here Package A and Package B meet XYZ or XXX near Marley.", ["Marley"]),
        ("A client gets a SaveComplete ShutdownCancelled or an X ClientMessage event.",
         ["SaveComplete", "ShutdownCancelled", "ClientMessage"]),
        ("They met Cecil B. DeMille of BMW M GmbH there.", ["Cecil B. DeMille", "BMW M GmbH"]),
        ("It comprises M CPUs. They met at Candlemas there. On the eve of Candlemas Mr. Pokorny saw Saving Mr. Banks.",
         ["CPU", "Candlemas", "Candlemas", "Mr. Pokorny", "Saving Mr. Banks"]),
        ("Present: Ms Priya Raman (Treasurer), Ida Holm (Clerk)", ["Ms Priya Raman", "Ida Holm"]),
        ("Normal CA125 is no proof. It says CA125 of them. See how Configuring Zorro is done. It has Zorro.",
         ["CA125", "CA125", "Zorro", "Zorro"]),
        ("They see Dealing with them, and met Zorro. Nowadays, Zorro is old.", ["Zorro", "Zorro"]),
        ("They heard Morning Ireland of Ireland, and Ireland. They saw the 1970 TV film, and the 1972 TV film.",
         ["Morning Ireland", "Ireland", "Ireland", "TV", "TV"]),
        ("NB, it sends 40 Gbps. It got 10 Gbps over the NFS.", ["NFS"]),
        ("They give 35 IU/ml of it, and use the CPU.", ["CPU"]),
        ("Conversely, they may fail. Conversely, it may hold.", []),
        ("ECGs are kept there. The nurse kept an ECG of it.", ["ECG", "ECG"]),
        ("Apologies\n\nMs Priya Raman\n\nNobody came.", ["Ms Priya Raman"]),
        ("At G5 it ends. Stage G5 is the last. A person in Stage G5 is ill.", ["G5", "G5", "G5"]),
        ("He joined the Campaign to Protect Rural England. It was New Year's Day there.",
         ["Campaign to Protect Rural England", "New Year's Day"]),
        ("It robbed Pender's Jewellers and the Harwick Fishermen's Association.",
         ["Pender's Jewellers", "Harwick Fishermen's Association"]),
        ("They lost the Winter Fuel Payment. He came to the Annual General Meeting.",
         ["Winter Fuel Payment", "Annual General Meeting"]),
        ("Tarn Vault is a backup server. The tarn is a lake, and each vault is one.", ["Tarn Vault"]),
        ("It was audited by Lorna Pickles of Pickles for them.", ["Lorna Pickles", "Pickles"]),
        ("Penrith Road Allotment Society\nMinutes of the Meeting\n\nACTION: Mr Sykes to write.",
         ["Penrith Road Allotment Society", "Mr Sykes"]),
        ("They met at Crowe's Meadow in May.", ["Crowe's Meadow"]),
        ("NEW BRIDGE\n\nBy Joanna Pellew\n\nThe vote is over.", ["Joanna Pellew"]),
        ("They asked Marley. Ask Marley again. They saw Marley.", ["Marley", "Marley", "Marley"]),
        ("Of Marley's words, IN NO EVENT SHALL THE MARLEY HEIRS OF ANY KIND be sued.", ["Marley", "MARLEY"]),
        ("It has CARD16 Zork, CARD16 Gnusto and CARD16 Frotz there.",
         ["CARD16", "Zork", "CARD16", "Gnusto", "CARD16", "Frotz"]),
        ("The Display ID is an ID or an ID, the ID of an ID; an id.", ["Display ID"]),
        ("Here: | Zork | Gnusto |\n|---|---|\n| a dose was given to | of Marley |\n\nThey saw Marley there.",
         ["Marley", "Marley"]),
        ("Nothing stirred. Humbug is a word, and nothing is humbug.", []),
        ("Scrooge slept. Then old Scrooge woke.", ["Scrooge", "Scrooge"]),  # a name elsewhere, so one here
        ("Snow fell. The snow was deep.", []),
        ("Old Marley was dead. They buried Marley.", ["Old Marley", "Marley"]),
        ("It was old then. Old Marley was dead.", ["Marley"]),
        ("Suddenly Scrooge rose. I saw Scrooge.", ["Scrooge", "Scrooge"]),
        ("He said, 'You must see Bob.'", ["Bob"]),
        ("Then he cried, \"God bless us! Oh, Humbug!\"", []),
        ("On Monday in June he met Fred.", ["Fred"]),
        ("I think I saw I don't know what.", []),
        ("It was Scrooge's pen and Marley’s ink.", ["Scrooge", "Marley"]),
        ("We saw the Ghost of Christmas\nYet to Come there.", ["Ghost of Christmas"]),
        ("We saw the Ghost of Christmas Yet to Come there.", ["Ghost of Christmas Yet to Come"]),
        ("There sat Ebenezer\nScrooge.", ["Ebenezer Scrooge"]),
        ("There sat Jean-\nLuc Picard.", ["Jean-Luc Picard"]),
        ("The Cratchit house. I saw the Cratch-\nit house.", ["Cratchit", "Cratchit"]),
        ("It was Christmas-\ntime there.", ["Christmas"]),
        ("There were Omar bin Rashid, Vincent van Gogh and Ana de la Cruz.",
         ["Omar bin Rashid", "Vincent van Gogh", "Ana de la Cruz"]),
        ("We saw Peter the Great, and showed Scrooge the Spirit.", ["Peter the Great", "Scrooge", "Spirit"]),
        ("They called Scrooge Scrooge. They left Scrooge in Cora Cora.", [*["Scrooge"] * 3, "Cora Cora"]),
        ("He saw St. Paul's Churchyard and Mr. J. P. Morgan.", ["St. Paul's Churchyard", "Mr. J. P. Morgan"]),
        ("It was Scrooge's nephew, not Bob's door.", ["Scrooge", "Scrooge's nephew", "Bob"]),
        ("She joined the Department of Health and Human Services.", ["Department of Health and Human Services"]),
        ("He fought in World War I in France.", ["World War I", "France"]),
        ("That is the Scrooge I know.", ["Scrooge"]),
        ("I was NOT there, not with NASA.", ["NASA"]),
        ("STAVE ONE\n\nMARLEY'S GHOST\n\nThey said that Marley was dead.", ["MARLEY", "Marley"]),
        ("Lothair II\nLothair II was a king. We met Lothair II.", ["Lothair II", "Lothair II", "Lothair II"]),
        ("Le président a vu Émile Zola à Besançon.", ["Émile Zola", "Besançon"]),
        ("There were Cains and Abels, Abrahams, Belshazzars and doubts about it.", []),
        ("She met Adams and Roberts, not Cain.", ["Adams", "Roberts", "Cain"]),
        ("They met O'Brien, John O’Neill and D'Artagnan. I’ll go at eight O'Clock.",
         ["O'Brien", "John O'Neill", "D'Artagnan"]),
        ("They met Mr. Smith of Deutsche Bank and Dr. Maria Ruiz of the University of Cambridge.",
         ["Mr. Smith", "Deutsche Bank", "Dr. Maria Ruiz", "University of Cambridge"]),
        ("They met Frau Lang von der Siemens AG, not Frau Lang von der Heide.",
         ["Frau Lang", "Siemens AG", "Frau Lang von der Heide"]),
        ("They met Joan of Arc, the Duke of York, Lord Byron of Rochdale and the Minister of Finance of France.",
         ["Joan of Arc", "Duke of York", "Lord Byron of Rochdale", "Minister of Finance of France"]),
        ("They met Anna Lang of Deutsche Bank and the General Society of Arts.",
         ["Anna Lang", "Deutsche Bank", "General Society of Arts"]),
        ("They met Mr. Jones. There, April Jones rose, and in April Jones fell.",
         ["Mr. Jones", "April Jones", "Jones"]),
        ("They met Sra. López y D. Juan Pérez there.", ["Sra. López", "D. Juan Pérez"]),
        ("It ended World War I. World War II began.", ["World War I", "World War II"]),
        ("They met Amado V. Hernandez there.", ["Amado V. Hernandez"]),
        ("They sold Acme Corp. Zorro bought Acme Co. Ltd. there.", ["Acme Corp", "Zorro", "Acme Co. Ltd"]),
        ("They read J. R. R. Tolkien there.", ["J. R. R. Tolkien"]),
        ("They saw Gandalf the Grey, and gave Gandalf the White House.",
         ["Gandalf the Grey", "Gandalf", "White House"]),
        ("They bought Enel S.p.A. and Vivendi S.A. there.", ["Enel S.p.A.", "Vivendi S.A."]),
        ("NF-κB binds it. TNF-α and IL-1β wake NF‑κB, not TGF-β1.", ["NF-κB", "TNF-α", "IL-1β", "NF-κB", "TGF-β1"]),
        ("萧炎是谁？萧炎是一个年轻人。", []),
        ("", []),
    ],
)  # fmt: skip
def test_names_are_found(text: str, expected: list[str]) -> None:
    assert names_in(text) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("STAVE ONE", True),
        ("MARLEY'S GHOST.", True),
        ("The end of it", True),
        ("Marley was dead.", False),
        ("'Are you there?'", False),
        ("word " * 40, False),
        ("", True),
    ],
)
def test_heading_is_short_without_full_stop_or_in_capitals(sentence: str, expected: bool) -> None:
    assert is_heading(sentence, 0, len(sentence)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("On December 25, 1843 it snowed.", ["25 December 1843"]),
        ("The 25th of December 1843 and 3 May 2001", ["25 December 1843", "3 May 2001"]),
        ("In December, on the 25th, in 1843", []),
        ("Am 3. März 2023, le 14 juillet\n2022, le 1er mai 1990, el 5 de mayo de 2021",
         ["3. März 2023", "14 juillet 2022", "1er mai 1990", "5 de mayo de 2021"]),
    ],
)  # fmt: skip
def test_full_dates_are_names(text: str, expected: list[str]) -> None:
    assert [name.form for name in find_dates(text, [(0, len(text))])] == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("We saw the Ghost. He asked the\nGhost, and Ghost it was.", ["the Ghost", "the\nGhost", "Ghost"]),
        ("We saw a Ghost, this Ghost, the Ghost.", ["Ghost", "Ghost", "Ghost"]),
        ("We saw the Cratchit house and the London road.", ["Cratchit", "London"]),
    ],
)
def test_an_article_is_written_with_a_common_word_that_mostly_has_it(text: str, written: list[str]) -> None:
    spans = split_sentences(text)
    names = find_names(text, spans, [False] * len(spans))
    found = include_articles(names, text)
    assert [text[name.start : name.end] for name in found] == written
    assert [name.form for name in found] == [name.form for name in names]


def test_spans_hold_the_written_name() -> None:
    text = "Nobody saw Mr.\nScrooge's nephew at St. Paul's Churchyard."
    spans = split_sentences(text)
    names = find_names(text, spans, [False] * len(spans))
    assert [text[name.start : name.end] for name in names] == [
        "Mr.\nScrooge",
        "Mr.\nScrooge's nephew",
        "St. Paul's Churchyard",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("K. Preserve the section.\n\nL. Delete any section. We met J. Smith.", ["J. Smith"]),
        ("A.\n Use in the book.", []),
        ("A.  \nDelete the book.", []),
    ],
)
def test_the_letter_of_a_list_item_is_no_initial(text: str, expected: list[str]) -> None:
    assert names_in(text) == expected


def test_the_label_after_a_code_in_a_list_is_no_name() -> None:
    lines = ["E01 Safety thermostat", "E12 Ignition failed", "E17 Lambda sensor faulty"]
    end = "They found E12 and rang Brambex Heating."
    assert names_in("\n\n".join([*lines, end])) == ["E12", "E12", "Brambex Heating"]
    rows = ["| E01 | Safety |", "| E12 | Ignition |", "| E17 | Lambda |", ""]
    assert names_in("\n".join([*rows, end])) == ["E12", "E12", "Brambex Heating"]


def test_two_lines_with_a_code_are_no_list_of_codes() -> None:
    assert names_in("A12 Wharfdale Lane was closed.\nA40 Western Avenue was closed.") == [
        "A12 Wharfdale Lane",
        "A40 Western Avenue",
    ]


def test_a_document_with_many_capitals_keeps_names_that_occur_once() -> None:
    roles = "The Chair thanked the Treasurer. The Clerk saw the Board. The Vote was lost, and the Motion fell. "
    text = (
        roles
        + "It reads JSON on a Raspberry Pi off Gull Point, asked the Department for Transport, and met the Isbjorn."
    )
    found = names_in(text)
    assert found[-5:] == ["JSON", "Raspberry Pi", "Gull Point", "Department for Transport", "Isbjorn"]
    assert "Motion" not in found and "Vote" not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It went to Reays of Wigton and to SMS Group of Linz.", ["Reays", "Wigton", "SMS Group", "Linz"]),
        ("They saw the Isle of Man and the Ghost of Christmas Past.", ["Isle of Man", "Ghost of Christmas Past"]),
        ("Then Enterprise Minister Roisin Kerrigan and Council Member Raul Escamilla left.",
         ["Minister Roisin Kerrigan", "Raul Escamilla"]),
        ("It was up since St Cuthbert's Sixth Form closed.", ["St Cuthbert's Sixth Form"]),
        ("They met Shanice Doucette. Then Council Member Doucette left.", ["Shanice Doucette", "Doucette"]),
        ("Then City Manager Alicia Fenn came.", ["Alicia Fenn"]),
        ("Interpreters of DA Languages came.", ["DA Languages"]),
        ("They saw Everton Clarke, Maura Tighe\nAttending: Joanna Hill came.",
         ["Everton Clarke", "Maura Tighe", "Joanna Hill"]),
        ("They met Rashid al-Din at Karum.", ["Rashid al-Din", "Karum"]),
        ("Midfielder Aqo Brandvold left.", ["Aqo Brandvold"]),
        ("Owner Jakob Mendel left.", ["Jakob Mendel"]),
        ("Chipmaker Ostaral will build.", ["Ostaral"]),
        ("Postmistress Peigon MacAskill came. Install TarnCal on it.", ["Peigon MacAskill", "TarnCal"]),
        ("It went to the Mission to Seafarers.", ["Mission to Seafarers"]),
        ("Vasquerol knocked it out. Vasquerol is from a town.", ["Vasquerol", "Vasquerol"]),
        ("Then it rained. LeafHand uses cameras.", ["LeafHand"]),
        ("It must tell HM Coastguard at once.", ["HM Coastguard"]),
        ("Geologist Ona Radav of the Hydrological Service said so.", ["Ona Radav", "Hydrological Service"]),
        ("It came from Kestrelon Power of Swindon.", ["Kestrelon Power", "Swindon"]),
        ("In Israel BioBee breeds wasps, in London Bridge House it is.", ["Israel", "BioBee", "London Bridge House"]),
        ("Noise at Sailor's Rest, and Scrooge's Ghost.", ["Sailor's Rest", "Scrooge", "Ghost"]),
        ("Nurse-led care is best. It is Nurse Brun who leads it.", ["Nurse Brun"]),
        ("Businessmen Solomon Perrow and Jo Kell came. Administrator Mark Tessel left.",
         ["Solomon Perrow", "Jo Kell", "Mark Tessel"]),
        ("Conservative MP Giles Thornbury asked.", ["Giles Thornbury"]),
        ("They met Anton Verhoeven of the Netherlands, Maria Theresa of Austria and Louise Élisabeth of France.",
         ["Anton Verhoeven", "Netherlands", "Maria Theresa of Austria", "Louise Élisabeth of France"]),
        ("They want bin Laden, von Trier and al-Tessim, and the van Ford built.",
         ["bin Laden", "von Trier", "al-Tessim", "Ford"]),
        ("They met James Stevenson, Esq. of South Park.", ["James Stevenson", "South Park"]),
        ("The Teska Rail Users' Group met.", ["Teska Rail Users' Group"]),
        ("They met Israeli Prime Minister Arivel Tessim and the Australian Defence Force.",
         ["Prime Minister Arivel Tessim", "Australian Defence Force"]),
        ("At 4:00pm AEDT they won the America's Cup, and at 5pm (ACDT) Australia's Davis Cup.",
         ["America's Cup", "Australia", "Davis Cup"]),
        ("The Federal Attorney-General Darvil Tessim came.", ["Darvil Tessim"]),
        ("It was Perrowan Chief Executive Geoff Dask.", ["Perrowan", "Geoff Dask"]),
        ("They met Pakistan President Tervez Musharrel and Norman Earl Thomson.",
         ["Pakistan", "President Tervez Musharrel", "Norman Earl Thomson"]),
        ("They met US Secretary of State Colin Tessim.", ["US", "Colin Tessim"]),
        ("They met Victorian Opposition Leader Denis Tessim.", ["Denis Tessim"]),
        ("It was Teska Bank Governor Bernie Frasel.", ["Teska Bank", "Governor Bernie Frasel"]),
        ("They bought Australia's Commonwealth Bank and met at King's College.",
         ["Australia", "Commonwealth Bank", "King's College"]),
        ("A Saudi Arabian tanker and Saudi Arabian Oil Minister Hisham Tessim came on Jan 12.",
         ["Minister Hisham Tessim"]),
        ("They met UN Special Envoy Ann Tessim and Secretary of State Martin Ogilven.",
         ["UN", "Ann Tessim", "Martin Ogilven"]),
        ("He told the Securities and Exchange Commission.", ["Securities and Exchange Commission"]),
        ("A fence by Jukes and Son of Coleford, a gate by Lanyon and Daughters.",
         ["Jukes and Son", "Coleford", "Lanyon and Daughters"]),
        ("They read of the Duchy of Cornwall and the Cornish Fish Producers' Organisation.",
         ["Duchy of Cornwall", "Cornish Fish Producers' Organisation"]),
        ("They met at Mar-a-Lago and Stow-on-the-Wold.", ["Mar-a-Lago", "Stow-on-the-Wold"]),
        ("The Centre for Trade Policy and Development and the African Court on Human and Peoples' Rights met.",
         ["Centre for Trade Policy and Development", "African Court on Human and Peoples' Rights"]),
        ("The Council of Europe and Amnesty International met the Court of Appeal and Supreme Court.",
         ["Council of Europe", "Amnesty International", "Court of Appeal", "Supreme Court"]),
        ("They chose Mrs Tessim Chair and Mr Polgate Vice Chair. Assistant Harbour Master Ben Kitto left.",
         ["Mrs Tessim", "Chair", "Mr Polgate", "Vice Chair", "Ben Kitto"]),
        ("The committee refused PA25/00417 of Tessim.", ["Tessim"]),
        ("They met the luthier Emile Surette of Lunenbrook and the Seafarers' International Union.",
         ["Emile Surette", "Lunenbrook", "Seafarers' International Union"]),
        ("Sarovian President Ilmar Kest and Danilo Freitag met Chief Medical Officer Dr Anwen Morris.",
         ["President Ilmar Kest", "Danilo Freitag", "Chief Medical Officer", "Dr Anwen Morris"]),
        ("They met the founder of Under Armour and staff of the National Oceanic and Atmospheric Administration.",
         ["Under Armour", "National Oceanic and Atmospheric Administration"]),
        ("Batsman Innocent Kaiber left. The scientist Diva Amol of the University of Teska stayed.",
         ["Innocent Kaiber", "Diva Amol", "University of Teska"]),
        ("They asked Hart and Nephew for a gate.", ["Hart and Nephew"]),
        ("Minister of Sport Augusto Gomelin and the European Bank for Reconstruction and Development agreed.",
         ["Augusto Gomelin", "European Bank for Reconstruction and Development"]),
        ("Assistant Romiro dos Santel stayed.", ["Romiro dos Santel"]),
        ("It was Thurn-und-Taxis-Post. 'Tis Jo Kell!", ["Thurn-und-Taxis-Post", "Jo Kell"]),
    ],
)  # fmt: skip
def test_firms_end_before_their_place_and_persons_begin_after_their_role(text: str, expected: list[str]) -> None:
    assert names_in(text) == expected
