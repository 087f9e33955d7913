from graphrag_pipeline.indexing.extraction.names.terms.word_uses import count_uses

TEXT = """The parser returns a value. You must return the value of the parser. It is possible to stop. If the file
exists, a parser must exist. By upgrading the parser you gain speed, but a value depending on it may
differ. The parser is slow.
"""


def test_the_neighbours_of_a_word_say_how_it_is_used() -> None:
    uses = count_uses(TEXT, [(0, len(TEXT))])
    assert uses.noun_share("parser") == 1.0
    assert uses.verbs["return"] == 2 and uses.noun_share("return") == 0.0
    assert uses.adjectives["possible"] == 1 and uses.noun_share("possible") == 0.0
    assert uses.noun_share("exist") == 0.0, "its plural-like form is a verb, because the base is only a verb"
    assert uses.noun_share("upgrading") == uses.noun_share("depending") == 0.0


def test_what_fails_is_no_noun_and_updates_are() -> None:
    text = """The lookup fails, and a test must fail. If the check fails, it may fail again. We update the list, you
    update it, and they must update it. The updates, or the security updates, help. An update of it is due."""
    uses = count_uses(text, [(0, len(text))])
    assert uses.noun_share("fail") == 0.0
    assert uses.nouns["update"] == 3


def test_a_word_with_the_capital_of_a_sentence_counts() -> None:
    uses = count_uses("Surgery helps. We offer surgery.", [(0, 15), (15, 32)])
    assert uses.total["surgery"] == 2


def test_what_follows_this_with_an_s_is_a_verb() -> None:
    text = "This applies to all of them, and this applies for us. The lens of this lens is a lens."
    uses = count_uses(text, [(0, len(text))])
    assert uses.nouns["applies"] == 0 and uses.nouns["lens"] > 1


def test_adjectives_of_a_list_are_no_nouns() -> None:
    text = "It has the social, and a social or an ecological effect. The market, and a market of it, fell."
    uses = count_uses(text, [(0, len(text))])
    assert (uses.nouns["social"], uses.firm["social"]) == (0, 0)
    assert (uses.nouns["market"], uses.firm["market"]) == (2, 1)


def test_a_word_that_the_document_inflects_may_be_a_verb() -> None:
    text = "They recoded it while recoding it. The turbine turned."
    uses = count_uses(text, [(0, len(text))])
    assert uses.is_inflected("recode") and not uses.is_inflected("turbine")


def test_a_participle_behind_a_verb_describes_a_state() -> None:
    text = "The file is encrypted, and if encrypted, it is an encrypted file. A shared file is here. "
    uses = count_uses(text, [(0, len(text))])
    assert uses.is_state("encrypted", "file") and not uses.is_state("shared", "file")
    text += "See the encrypted file, or encrypted files of the encrypted file."
    assert not count_uses(text, [(0, len(text))]).is_state("encrypted", "file"), "it is a term then"


def test_a_word_cut_from_a_noun_of_the_document_is_clipped() -> None:
    text = "The config is the configuration of it, or of the slurm. The slurmd is here. The params of a parameter are. "
    text += "A diff, the diff, a diff, the diff and a diff show the difference."
    uses = count_uses(text, [(0, len(text))])
    assert uses.is_clipped("config") and uses.is_clipped("params")
    assert not (uses.is_clipped("slurm") or uses.is_clipped("diff") or uses.is_clipped("configuration"))
