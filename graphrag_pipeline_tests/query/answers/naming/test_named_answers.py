import pytest

from graphrag_pipeline.query.understanding.asked_name import first_clause, read_asked_name
from graphrag_pipeline_tests.support.citation_checks import check_citations
from graphrag_pipeline_tests.support.documentation.doc_sample import index_sample
from graphrag_pipeline_tests.support.roots import open_built

METHODS = ["local", "basic", "lazy", "drift", "auto", "global"]
TEXTS = {
    "mill.txt": "Anna Berger owned the mill at Lindau. Her sister, Clara Berger, kept the books. Anna Berger hired two "
    "millers. Later Anna Berger spoke with Tom Weber about the harvest, and Tom Weber said nothing.",
    "film.txt": "The Silent River is a film directed by Paul Keller and produced by Marta Vogel. Paul Keller was born "
    "in Zurich. Paul Keller died in 1967.",
    "kin.txt": "Ruth Adler was a nurse in Basel. Her husband, the baker Hugo Stamm, built the shelves. In 1950 she "
    "hired a student. Emil Roth came to Basel with his uncle Jonas Roth. Ida Kern married Karl Moser, the son of Otto "
    "Moser and his wife Frieda. Peter Lang wrote to his brother Max Lang. Peter Lang wrote to his brother Theo Lang.",
    "inn.txt": "Annis Thorpe ran the dairy with her husband, John Webb. The landlord of the Red Lion, a heavy man "
    "called Peter Hollis, was the husband of Bertha Lane. Hugh Dorn is mate of the barge Heron. His uncle, Captain "
    "Elias Rudd, owns it.",
    "works.txt": "Minutes of Calder Works\n\nThe chair, Mrs. Judith Ashworth, opened the meeting. The finance "
    "director, Helen Kowalski, reported a loss. Nora Lunt is the managing director. The first secretary was Basil "
    "Lowe. The present secretary is Priya Nair.",
    "quay.txt": "The door opened, and a tall man came in.\n\n'They have shut the road,' said Harker's "
    "nephew. 'I walked.'\n\n'Then walk back, Walter, and be quick,' answered Harker. 'I did not call "
    "you.'\n\nHarker, the old wharf owner, sat down again. The mayor, Elsa Brandt, and the harbour master, "
    "Ulf Stenberg, were in the room, too.",
    "orchard.txt": "Two children sat on the wall. One was young Harker. Young Harker had a torn collar.\n\nA "
    "girl took his hand.\n\n'Come home, dear brother,' said the girl. 'Mother is asleep.'\n\n'I will not, "
    "Letty,' answered the boy. 'Not now.'\n\nHarker got down from the wall at last.",
    "brewery.txt": "The great feast of that summer was Tobias Crane's. The carts were pushed out, the floor "
    "was sanded, and the malt-house was hung with green and made as merry a supper-room as ever was.\n\n"
    "Tobias Crane kept the brewery. Tobias Crane died in the infirmary at Selby. The christening was kept in "
    "the barn behind the inn.",
    "crew.txt": "Mrs. Lamb asked for the soup. 'And where is your brother, Lame Peter?' said Mrs. Lamb to "
    "the girls. Lame Peter came late. Lame Peter drank it. Ivor Pugh, who had a fine voice, sang. Dora "
    "Quist, a bee-keeper from Moss, wept. Then Ivor Pugh left with Dora Quist.",
    "vase.txt": "A vase stolen from a chapel in Ghent in May has been found in a cellar near Bonn, a guard said. The "
    "mason Olaf Brandt, who filed the charge, smiled in the hall. Judge Vera Kolb announced a new hearing. The barge "
    "was towed to Emden and will be mended in Bremen.",
    "minutes.txt": "Linden Road Garden Society\nMinutes of the Annual General Meeting\n\nPresent: Hilda Boone "
    "(Chair), Ray Sykes (Treasurer) and 31 members.\n\nThe motion on the rents was put to the vote and carried by "
    "33 votes to 6. Some 12 % of tenants own a pump. Mr Stamp invited the members to the plant fair of Kirkby in "
    "Blossom on 1 May at the Corn Exchange. The accounts of the garden were checked by Lorna Pickles of Pickles and "
    "Dean.",
    "town.txt": "The council met in Bern. Tom Weber complained about the roads, and Marta Vogel agreed with Tom Weber.",
}


@pytest.fixture(scope="module")
def mill(tmp_path_factory):
    return open_built(tmp_path_factory.mktemp("mill") / "root", TEXTS)


def first_line(result):
    return result.answer.splitlines()[0]


@pytest.mark.parametrize("method", ["local", "basic", "global"])
@pytest.mark.parametrize(
    ("question", "name", "sentence"),
    [
        ("Who is Anna Berger's sister?", "Clara Berger", "Anna Berger owned the mill at Lindau. Her sister,"),
        ("Who directed The Silent River?", "Paul Keller", "The Silent River is a film directed by"),
        ("Who produced The Silent River?", "Marta Vogel", "The Silent River is a film directed by"),
        ("Where was Paul Keller born?", "Zurich", "Paul Keller was born in Zurich."),
        ("When did Paul Keller died?", "1967", "Paul Keller died in 1967."),
        ("Who was Ruth Adler's husband?", "Hugo Stamm", "Ruth Adler was a nurse in Basel. Her husband,"),
        ("Who is Jonas Roth's nephew?", "Emil Roth", "Emil Roth came to Basel with his uncle Jonas Roth."),
        ("Who was Ida Kern's husband?", "Karl Moser", "Ida Kern married Karl Moser,"),
        ("Whom did Ida Kern marry?", "Karl Moser", "Ida Kern married Karl Moser,"),
        ("Who is Annis Thorpe's husband?", "John Webb", "Annis Thorpe ran the dairy with her husband"),
        ("Who is the landlord of the Red Lion?", "Peter Hollis", "The landlord of the Red Lion,"),
        ("Who is Bertha Lane's husband?", "Peter Hollis", "The landlord of the Red Lion,"),
        ("Who is the mate of the Heron?", "Hugh Dorn", "Hugh Dorn is mate of the barge Heron."),
        ("Who is Captain Rudd's nephew?", "Hugh Dorn", "Hugh Dorn is mate"),
        ("Who is the managing director of Calder Works?", "Nora Lunt", "Nora Lunt is the managing director."),
        ("Who is the finance director?", "Helen Kowalski", "The finance director, Helen Kowalski,"),
        ("Who is the secretary of Calder Works?", "Priya Nair", "The present secretary is Priya Nair."),
        ("Who is Harker's nephew?", "Walter", "'They have shut the road,' said Harker's nephew. 'I walked.'"),
        ("What is the name of Harker's sister?", "Letty", "'Come home, dear brother,' said the girl."),
        ("Who is the harbour master?", "Ulf Stenberg", "The mayor, Elsa Brandt, and the harbour master, Ulf Stenberg"),
        ("Where did Tobias Crane hold his feast?", "the malt-house", "The carts were pushed out"),
        ("Where did Tobias Crane die?", "the infirmary at Selby", "Tobias Crane died in the infirmary"),
        ("Where was the stolen vase found?", "a cellar near Bonn", "A vase stolen"),
        ("Where was the vase stolen?", "a chapel in Ghent", "A vase stolen"),
        ("Where was the barge towed?", "Emden", "The barge was towed"),
        ("Where will the barge be mended?", "Bremen", "The barge was towed"),
        ("Who filed the charge?", "Olaf Brandt", "The mason Olaf Brandt, who filed the charge"),
        ("Who is the Chair of the society?", "Hilda Boone", "Present: Hilda Boone"),
        ("Who is the chairman of the garden society?", "Hilda Boone", "Present: Hilda Boone"),
        ("How many members voted against the motion?", "6", "The motion on the rents"),
        ("How many tenants own a pump?", "12 %", "Some 12 %"),
        ("Who checked the accounts?", "Lorna Pickles", "The accounts of the garden"),
        ("Where is the plant fair?", "the Corn Exchange", "Mr Stamp invited"),
        ("Where was the christening kept?", "the barn behind the inn", "The christening was kept"),
    ],
)
def test_the_first_line_names_what_is_asked_for_and_cites_its_sentence(mill, method, question, name, sentence):
    result = mill.search(question, method=method)
    assert first_line(result) == f"Extractive answer (no model): {name}, by the first passage [1]."
    assert result.citations[0].quote.startswith(sentence)
    assert result.citations[0].text_unit_id in {unit.id for unit in result.context.text_units}
    check_citations(mill, result)


@pytest.mark.parametrize("method", ["local", "basic", "auto"])
@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("Who is Lame Peter?", "'And where is your brother, Lame Peter?' said Mrs. Lamb to the girls."),
        ("Who is Ivor Pugh?", "Ivor Pugh, who had a fine voice, sang."),
        ("Who is Dora Quist?", "Dora Quist, a bee-keeper from Moss, wept."),
        ("Who is Nora Lunt?", "Nora Lunt is the managing director."),
    ],
)
def test_the_first_quotation_says_who_a_person_is(mill, method, question, quote):
    result = mill.search(question, method=method)
    assert result.citations[0].quote.endswith(quote)
    check_citations(mill, result)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "question",
    [
        "Who is Anna Berger's dentist?",
        "Who found the vase?",
        "Who stole the vase in Bonn?",
        "Who is Harker's niece?",
        "Who is Harker's brother?",
        "Where did Tobias Crane hold his wedding?",
        "Where did Ivor Pugh die?",
        "Who is Tom Weber's sister?",
        "Who is Paul Keller?",
        "Who is Anna?",
        "Who is Jonas Roth's niece?",  # the text says "his uncle"
        "Who is Peter Lang's brother?",  # the text names two
        "Who is Ida Kern's brother?",
        "Who is Annis Thorpe's sister?",
        "Who is the director of Calder Works?",  # the texts have two others
        "Who is Bertha Lane's landlord?",
        "Who is the Chair of the meeting?",  # the minutes of two meetings have one each
        "How many tenants died of the pump?",  # the text counts those who own one
        "Who built the shelves in 1950?",  # the year of the next sentence
    ],
)
def test_no_name_is_made_up(mill, method, question):
    assert "by the first passage" not in mill.search(question, method=method).answer


@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("Who owned {}?", "the mill"),
        ("Who directed {}?", "The Silent River"),
        ("Who produced {}?", "The Silent River"),
        ("Who filed {}?", "the charge"),
        ("Who built {}?", "the shelves"),
        ("Who hired {}?", "two millers"),
        ("Where was {} found?", "the vase"),
        ("Where was {} towed?", "the barge"),
        ("When did {} die?", "Paul Keller"),
    ],
)
def test_a_question_for_another_thing_never_keeps_the_first_line(mill, question, thing):
    right = first_line(mill.search(question.format(thing)))
    others = (
        "Brisco Ferries",
        "Tom Weber",
        "Max Lang",
        "the books",
        "the harvest",
        "the barge",
        "the hall",
        "the garden",
    )
    for other in set(others) - {thing}:
        assert first_line(mill.search(question.format(other))) != right or "by the first passage" not in right


def test_the_law_for_another_thing_is_about_questions_that_are_answered(mill):
    assert "Anna Berger, by" in first_line(mill.search("Who owned the mill?"))
    assert "Olaf Brandt, by" in first_line(mill.search("Who filed the charge?"))


def test_a_filter_also_holds_for_the_name(mill):
    result = mill.search("Who is Anna Berger's sister?", filters=["title=town"])
    assert "Clara" not in result.answer


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who is Scrooge's clerk and what does he do?", ("person", {"scroog"}, {"clerk"}, True)),
        ("Who is the author of Faust?", ("person", {"faust"}, {"author"}, True)),
        ("Who directed Faust?", ("person", {"faust"}, {"direct"}, False)),
        ("How long has Marley been dead?", ("duration", {"marley"}, {"dead"}, False)),
        ("Where was Marley buried?", ("place", {"marley"}, {"buri"}, False)),
    ],
)
def test_a_question_is_read(question, expected):
    asked = read_asked_name(question, frozenset())
    assert (asked.kind, asked.anchors, asked.focus, asked.is_role) == expected


@pytest.mark.parametrize("question", ["Who is Tiny Tim?", "What are the main themes?", "谁是萧炎？"])
def test_a_question_for_no_other_name_is_not_read(question):
    assert read_asked_name(question, frozenset()) is None


def test_the_owner_is_a_name_of_its_own():
    assert first_clause("Who is Scrooge's clerk and what is he?") == "Who is Scrooge of the clerk"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    with index_sample(tmp_path_factory.mktemp("sample")) as index:
        yield index


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "question",
    [
        "Who is Scrooge's clerk?",
        "Who is Ebenezer Scrooge's clerk?",
        "Who is Scrooge's clerk and what does he have to do with Tiny Tim?",
    ],
)
def test_the_questions_that_a_newcomer_sees_get_the_name(sample, method, question):
    result = sample.search(question, method=method)
    assert first_line(result).startswith("Extractive answer (no model): Bob Cratchit,")
    assert "Bob Cratchit" in result.citations[0].quote
    check_citations(sample, result)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["local", "basic", "auto"])
@pytest.mark.parametrize(
    ("question", "name", "quote"),
    [
        ("Who is Scrooge's nephew?", "Fred", "'I'm sure he is very rich, Fred,'"),
        ("What is the name of Scrooge's sister?", "Fan", "'Home, little Fan?' returned the boy."),
        ("Where did Fezziwig hold his ball?", "the warehouse", "and the warehouse was as snug"),
        ("Who is Tiny Tim?", "", "in came little Bob, the father,"),
        (
            "How much does Scrooge pay his clerk?",
            "fifteen shillings a week",
            "'my clerk, with fifteen shillings",
        ),
        ("How long has Marley been dead?", "seven years", "that face of Marley, seven years dead"),
        (
            "Whose face does Scrooge see in the knocker of his door?",
            "Jacob Marley",
            "not a knocker, but Marley's face.",
        ),
    ],
)
def test_the_demo_answers_name_what_they_are_asked_for(sample, method, question, name, quote):
    result = sample.search(question, method=method)
    assert not name or first_line(result) == f"Extractive answer (no model): {name}, by the first passage [1]."
    assert quote in " ".join(result.citations[0].quote.split())
    check_citations(sample, result)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "question",
    [
        "Who is Scrooge's dentist?",
        "Who is Bob Cratchit's lawyer?",
        "Where does Scrooge live?",  # in "he was thinking of an animal, [...] that lived in London" the animal does
    ],
)
def test_the_sample_names_nothing_that_it_does_not_say(sample, method, question):
    assert "by the first passage" not in sample.search(question, method=method).answer


MEETING = {
    "minutes.txt": "MINUTES OF THE MEETING OF THE SAXBY TRANSPORT PARTNERSHIP\nHeld in the Corn Exchange\n\n"
    "Present: Councillor Patricia Ainsley (Chair), Mr Rupert Delacourt (Vice-Chair), Graham Penhale (Clerk), "
    "Naomi Fitch (Treasurer)\n\nThe culvert belongs to the partnership. Signed: P. Ainsley, Chair\n",
    "tunnel.txt": "Chief engineer Regula Stampfli was the first to walk through the tunnel. Two miners, Goran Ilic and "
    "Paulo Teixeira, died in a rockfall in 2018. A minute of silence was held for them.",
    "guide.txt": "Begin with maintenance and reliever therapy (MART) at low dose. MART is given in one inhaler.",
}


@pytest.fixture(scope="module")
def meeting(tmp_path_factory):
    with open_built(tmp_path_factory.mktemp("meeting") / "root", MEETING) as index:
        yield index


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who is the clerk of the partnership?", "Graham Penhale"),  # in brackets, and no "Held" from the heading
        ("Who is the treasurer?", "Naomi Fitch"),
        ("Who is the vice-chair?", "Rupert Delacourt"),
        ("Who is the chair of the partnership?", "Patricia Ainsley"),  # "P. Ainsley" is no other name
        ("What does MART stand for?", "maintenance and reliever therapy"),
    ],
)
def test_a_list_of_those_present_names_their_offices(meeting, question, name):
    first = meeting.search(question).answer.splitlines()[0]
    assert name in first


def test_the_year_in_which_others_died_is_not_named(meeting):
    assert "2018, by the first passage" not in meeting.search("When did Regula Stampfli die?").answer
    assert "2018, by the first passage" in meeting.search("When did Goran Ilic die?").answer


DEPOT = {
    "rail.txt": "The line has waited for a year, because the depot at Lorne has no chargers. Great Orme Railway "
    "ordered five trains from the manufacturer Tessel in 2022 at a cost of 38 million pounds. Northgate Rail, which "
    "owns the depot, apologised. The fair at Lorne, first held in 1895, is sponsored this year by Calder Mutual.",
    "kin.txt": "Ida Kern learned the game from her grandfather, Max Kern, a smith who died in 2021. Vera Lund, who "
    "runs a bakery in Great Farth, came late.",
    "ward.txt": "The ward delivered 412 babies last year. The trust could not find enough midwives.",
    "talk.txt": "'Mr. Hobb has been dead these seven years,' Silas replied. 'He died seven years ago, this night.' "
    "Silas thought of his seven-years'-dead partner.",
    "mill.txt": "The mill at Lorne was closed in 1990 by the firm Ansel. Work on the new mill will begin in 2031. "
    "It will cost 9 million pounds.",
}


@pytest.fixture(scope="module")
def depot(tmp_path_factory):
    with open_built(tmp_path_factory.mktemp("depot") / "root", DEPOT) as index:
        yield index


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("When did Great Orme Railway order the trains?", "2022"),
        ("When did Tessel order the trains?", ""),  # it was ordered from
        ("How much did the trains cost?", "38 million pounds"),
        ("How much did the depot cost?", ""),
        ("How much did the chargers cost?", ""),
        ("Who owns the depot?", "Northgate Rail"),
        ("Who sponsors the fair?", "Calder Mutual"),
        ("Who sponsored the fair in 1895?", ""),
        ("When was the fair first held?", "1895"),
        ("When did Max Kern die?", "2021"),
        ("When did Ida Kern die?", ""),
        ("Who runs a bakery in Great Farth?", "Vera Lund"),
        ("Who runs a bakery in Lorne?", ""),
        ("How many babies did the ward deliver?", "412"),
        ("How many babies were found in the ward?", ""),
        ("How long has Mr. Hobb been dead?", "seven years"),
        ("How long has Silas been dead?", ""),  # he only speaks
        ("When did Mr. Hobb die?", "seven years ago"),
        ("When did Silas die?", ""),
        ("When did the mill close?", "1990"),
        ("When will work on the new mill be begun?", "2031"),
    ],
)
def test_a_name_or_number_is_that_of_the_asked_subject_place_and_year(depot, question, name):
    first = first_line(depot.search(question))
    assert first == f"Extractive answer (no model): {name}, by the first passage [1]." if name else "[1]" not in first


TOWN = {
    "mill.txt": "Fire at a mill\n\nFire gutted the Crane Paper Mill at Hallerby on Tuesday. A watchman was treated at "
    "Hallerby General Hospital. The mill, built in 1871 by Silas Crane, employed 130 people. Fire chief Marta "
    "Rees said the fire had started in a drying room.",
    "chef.txt": "Hortense Villiers, who won two prizes at the Gilded Pike in Wexcombe, is to leave it for a school "
    "in Bruges.\n\nThe Gilded Pike belongs to Larkin Houses. Lady Amory, who died last winter, had founded it in her "
    "stables in 1988.",
    "harbour.txt": "The Chairman, Captain Magnus Rendall, welcomed the new Harbour Engineer, Mr Iain Sclater. The "
    "yacht Fulmar had sunk at her moorings on 2 September. The sea wall was rebuilt by Pascoe Marine, a firm of Moss. "
    "The concert of the choir was a success. It was given in Ardle Abbey.",
    "choir.txt": "The Secretary, Mr Fabian Holt, stepped down; Mrs Priscilla Dunn was elected in his place.",
    "policy.txt": "Insurers paid the owner 15,000 pounds at the time; Caledonian General, which took over the policy, "
    "says that it will not ask for it back.",
}


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with open_built(tmp_path_factory.mktemp("town") / "root", TOWN) as index:
        yield index


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who built the Crane Paper Mill?", "Silas Crane"),  # "the mill"
        ("When was Hallerby General Hospital built?", ""),  # that was the mill
        ("How many people worked at the mill?", "130"),
        ("Where did the fire begin?", "a drying room"),
        ("When was the Gilded Pike founded?", "1988"),
        ("Who founded the Gilded Pike?", "Lady Amory"),
        ("Who founded Larkin Houses?", ""),  # "it" is what the sentence before begins with
        ("Who won two prizes in Wexcombe?", "Hortense Villiers"),
        ("Who won two prizes in Bruges?", ""),
        ("Who is the Harbour Engineer?", "Mr Iain Sclater"),
        ("Who is the new secretary?", ""),  # the text names who stepped down
        ("Who was the secretary?", "Mr Fabian Holt"),
        ("When did the Fulmar sink?", "2 September"),
        ("Who rebuilt the sea wall?", "Pascoe Marine"),
        ("Which company rebuilt the sea wall?", "Pascoe Marine"),
        ("Which company built the Crane Paper Mill?", ""),  # Silas Crane is none
        ("Where was the concert of the choir held?", "Ardle Abbey"),
        ("How much did Caledonian General pay?", ""),
    ],
)
def test_what_a_short_name_or_pronoun_stands_for_is_the_asked_thing(town, question, name):
    first = first_line(town.search(question))
    assert first == f"Extractive answer (no model): {name}, by the first passage [1]." if name else "[1]" not in first


HOUSEHOLD = {
    "house.txt": "Dora Finch has a large house in Brantwick. Her cook, with nine pounds a week and a room of his own, "
    "never thought of leaving Dora Finch. The coachman of Dora Finch left in May. The bed in the attic cost 40 pounds.",
    "inn.txt": "Otto Lind keeps the inn at Lorne. Carters pay two pounds a week for a bed there.",
}


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How much does Dora Finch pay her cook?", "nine pounds a week"),
        ("How much does the cook of Dora Finch earn?", "nine pounds a week"),
        ("How much did the bed in the attic cost?", "40 pounds"),
        ("How much does Dora Finch pay her coachman?", ""),
        ("How much does Otto Lind pay his cook?", ""),
    ],
)
def test_a_sum_for_a_time_is_what_someone_is_paid(tmp_path, question, name):
    with open_built(tmp_path / "root", HOUSEHOLD) as index:
        answer = index.search(question).answer
    assert f"(no model): {name}, by the" in answer if name else "by the first passage" not in answer
