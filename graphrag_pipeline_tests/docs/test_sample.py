import pytest

from graphrag_pipeline_tests.support.documentation.doc_sample import PAGE, index_sample, put_into_page, render_sample


@pytest.mark.slow
def test_the_page_shows_what_the_product_prints(tmp_path):
    """After a change of what it prints: `python -m graphrag_pipeline_tests.support.documentation.doc_sample`."""
    with index_sample(tmp_path) as index:
        sample = render_sample(index)
        assert "Bob Cratchit" in index.search("Who is Ebenezer Scrooge's clerk?").answer
        assert "Marley was dead" in index.search("Who is Jacob Marley?").answer  # though no text unit read says so
    assert PAGE.read_text(encoding="utf-8") == put_into_page(sample)
