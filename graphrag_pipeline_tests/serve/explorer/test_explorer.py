"""The explorer in headless Chromium: each page's content, three widths, dark, the keyboard alone, hostile texts, a key.

Run with `make test-ui`; needs Debian's `chromium` and `chromium-driver`. Screenshots are left in the folder that
GRAPHRAG_SCREENSHOTS names, if it is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.access.access_file import ViewRules, add_key
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.access.views import build_view
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.evaluation.feedback import read_feedback
from graphrag_pipeline.pipeline.live_status import LiveStatus, keeping_up, write_live_status
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.dagster.live_browser import keep, running_chromium, wait_for_text
from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until
from graphrag_pipeline_tests.support.explored_roots import MENU, make_explored_root, make_hostile_root
from graphrag_pipeline_tests.support.explorer_pages import (
    CONTRAST,
    IS_INSIDE,
    LUMINANCE,
    PATIENCE_S,
    find,
    is_fitting,
    marked,
    press,
    resize,
    scheme,
    serious_findings,
    tab_to,
    use_key,
    visit,
)
from graphrag_pipeline_tests.support.roots import indexed_root, put
from graphrag_pipeline_tests.support.serving import running_server

pytestmark = [pytest.mark.ui, pytest.mark.timeout(600)]
WIDE, MIDDLE, NARROW = (1400, 1000), (834, 1112), (390, 844)
FACT = "guests: 12"
"""A fact of a document, which a phone shows on the page of the document."""
PAGES = {
    "ask": ("What do you want to know?", "Advanced", "Examples from this index", " documents, "),
    "graph": ("Graph", "Shown", "entities"),
    "communities": ("Communities and reports", "Tree", "entities"),
    "communities?view=treemap": ("Communities and reports", "entities"),
    "communities?view=reports": ("Communities and reports", "Highest rating", " rows"),
    "entities": ("Entities", "Fezziwig", "Person", " rows"),
    "documents": ("Documents", "one.txt", "four.txt", FACT),
    "snapshots": ("Snapshots", "published", "Why", "four.txt", "What changed", "because of"),
    "quality": (
        "Quality and cost",
        "Index checks: ",
        "Answer quality: not measured yet",
        "look at it",
        "type entropy",
        "good figures",
        "Recall of evidence",
        "87.5 %",
        "$0.00",
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_explored_root(tmp_path_factory.mktemp("explored") / "carol")


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    hostile = make_hostile_root(tmp_path_factory.mktemp("attacked") / "hostile")
    with running_server({"carol": root, "hostile": hostile}) as running:
        yield running.url


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with running_chromium(*WIDE) as driver:
        yield driver


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """A wide, light window without a session; afterwards no page may have broken the policy or thrown."""
    resize(chromium, WIDE)
    scheme(chromium, "light")
    chromium.get_log("browser")
    yield chromium
    logged = [one["message"] for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert [message for message in logged if "401" not in message and "404" not in message] == []


@pytest.mark.parametrize("size", [WIDE, MIDDLE, NARROW], ids=["wide", "middle", "narrow"])
@pytest.mark.parametrize("page", PAGES)
def test_each_page_shows_its_content_at_each_width(browser: Any, server: str, page: str, size: tuple[int, int]) -> None:
    resize(browser, size)
    visit(browser, server, page)
    shown = [text for text in PAGES[page] if size != NARROW or text != FACT]
    wait_for_text(browser, *shown, "GraphRAG pipeline", "carol")
    assert find(browser, ".snapshot time").text.endswith(("now", "ago"))
    assert find(browser, ".snapshot").text.startswith("Snapshot")
    assert is_fitting(browser)
    assert serious_findings(browser) == []
    keep(browser, f"explorer_{page.replace('?view=', '_')}_{size[0]}")


def test_a_reader_rates_and_corrects_an_answer(browser: Any, server: str, root: Path) -> None:
    visit(browser, server, "ask?q=Who%20missed%20Marley%3F")
    wait_for_text(browser, "Who missed Marley?", "Sources")
    find(browser, "button[aria-label='Bad answer']").click()
    find(browser, "input[name=correction]").send_keys("Scrooge missed him.\ue007")
    wait_until(lambda: len(read_feedback(root)) == 2, PATIENCE_S)
    first, second = read_feedback(root)
    assert (first.rating, first.correction, second.correction) == ("down", "", "Scrooge missed him.")
    assert second.question == "Who missed Marley?" and second.answer and second.documents
    keep(browser, "explorer_feedback")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_candidate_that_waits_is_reviewed(browser: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    root = indexed_root(tmp_path / "reviewed")
    settings = "storage: {n_buckets: 2}\npublishing: {review: true, golden_questions: gold.jsonl}\n"
    (root.path / "settings.yaml").write_text(settings)
    (root.path / "gold.jsonl").write_text('{"question": "Who carried Tiny Tim home?", "evidence": ["two.txt"]}\n')
    put(root.path, "two.txt", "Martha carried Tiny Tim home. <b>Bob Cratchit</b> sang.")
    candidate = run_index(Root(root.path)).waiting
    resize(browser, size)
    with running_server({"carol": root.path}) as running:
        visit(browser, running.url, "snapshots")
        wait_for_text(browser, "waiting")
        find(browser, f"a[href='#/review/{candidate}']").click()
        wait_for_text(browser, "Review of a candidate", "All checks passed", "two.txt", "Martha carried Tiny Tim home")
        wait_for_text(browser, "MARTHA — TINY TIM", "Bob Cratchit carried Tiny Tim home", "at least 0.9", "within")
        assert is_fitting(browser)
        assert serious_findings(browser) == []
        keep(browser, f"explorer_review_{size[0]}")
        browser.get(f"{running.url}/review/{candidate}")
        wait_for_text(browser, "Review of a candidate", f"{candidate}")
        assert browser.current_url == f"{running.url}/#/review/{candidate}"


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("page", ["entities/0", "documents/menu.md", "communities/0", "relationships/0"])
def test_the_page_of_a_record_fits_and_is_accessible(
    browser: Any, server: str, page: str, size: tuple[int, int]
) -> None:
    resize(browser, size)
    visit(browser, server, page)
    find(browser, "h1")
    assert is_fitting(browser)
    assert serious_findings(browser) == []
    keep(browser, f"explorer_{page.replace('/', '_')}_{size[0]}")


def test_a_relationship_shows_the_sentences_that_name_both_ends(browser: Any, server: str) -> None:
    visit(browser, server, "entities/BOB CRATCHIT")
    find(browser, ".related a[href*='relationships']").click()
    wait_until(lambda: "relationships" in browser.current_url and find(browser, "main").text, PATIENCE_S)
    passage = find(browser, ".joined li")
    names = find(browser, "h1").text.partition(":")[0].split(" — ")
    assert len(names) == 2 and names == [one.text for one in browser.find_elements("css selector", "h1 a")]
    marked_ends = {one.get_attribute("href") for one in passage.find_elements("css selector", ".mention")}
    assert marked_ends == {one.get_attribute("href") for one in browser.find_elements("css selector", "h1 a")}
    text = find(browser, "main").text
    assert "Relationship " not in text and "No description" not in text and "**" not in text and "|" not in text


def test_the_check_of_accessibility_finds_a_button_without_a_name(browser: Any, server: str) -> None:
    visit(browser, server, "entities")
    find(browser, "td a")
    browser.execute_script("document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in " ".join(serious_findings(browser))


def test_a_phone_has_filters_behind_a_disclosure_no_treemap_and_a_box_that_covers_nothing(
    browser: Any, server: str
) -> None:
    resize(browser, NARROW)
    visit(browser, server, "communities?view=treemap")
    find(browser, "ul.tree a")
    assert "Treemap" not in find(browser, "main").text
    visit(browser, server, "graph")
    find(browser, ".listing li")
    assert not find(browser, "select[name=type]").is_displayed()
    picture, zoom = (find(browser, one).rect for one in (".canvas", ".zoom"))
    assert zoom["y"] >= picture["y"] + picture["height"]
    visit(browser, server, "ask?q=Who%20missed%20Marley%3F")
    wait_for_text(browser, "Ask next")
    seen = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    box = "return document.querySelector('.composer').getBoundingClientRect()"
    browser.execute_script("scrollTo(0, 0)")
    assert browser.execute_script(f"{box}.bottom") <= browser.execute_script("return innerHeight"), "asking is at hand"
    browser.execute_script("scrollTo(0, document.body.scrollHeight)")
    for last in (".turn .actions", ".follow-ups"):
        assert browser.execute_script(seen, last) <= browser.execute_script(f"{box}.top") + 1


def test_a_menu_leads_to_the_pages_on_a_narrow_screen(browser: Any, server: str) -> None:
    resize(browser, NARROW)
    visit(browser, server, "ask")
    entry = find(browser, "nav a[href='#/entities']")
    assert not entry.is_displayed()
    find(browser, ".menu").click()
    keep(browser, "explorer_menu")
    entry.click()
    wait_for_text(browser, "Fezziwig")
    assert not find(browser, "nav a[href='#/entities']").is_displayed()


def test_a_document_in_markdown_is_rendered_and_loads_and_links_nothing(browser: Any, server: str) -> None:
    visit(browser, server, "documents/menu.md")
    assert find(browser, ".document-text td strong").text == "goose"
    text = find(browser, ".document-text").text
    assert "[picture: a plan] of a site (https://elsewhere.example/) <script>" in text
    assert "to the feast, see the list." in text and "link (javascript:window.pwned=3)" in text
    assert "Bob Cratchit ate the whole goose, down to the bones." in " ".join(text.splitlines())
    assert "goose,\ndown" not in text and find(browser, "main").text.count("12") == 1
    assert find(browser, ".document-text dt").text == "guests"
    assert 'if dish == "*goose*":' in text and "|" not in text and "#" not in text and "**" not in text
    assert browser.find_elements("css selector", "main img, main script, a[href*=elsewhere]") == []
    start = MENU.index("Bob Cratchit carried")
    end = MENU.index(" to the feast")
    visit(browser, server, f"documents/menu.md?start={start}&end={end}")
    find(browser, "mark")
    assert marked(browser) == "Bob Cratchit carried Tiny Tim"


def test_what_up_is_doing_is_seen_on_every_page(browser: Any, server: str, root: Path) -> None:
    with keeping_up(root):
        write_live_status(root, LiveStatus("indexing", "3 files changed: graph", 7, 15))
        visit(browser, server, "entities")
        wait_for_text(browser, "3 files changed: graph")
        assert find(browser, ".live progress").get_attribute("value") == "7"
        write_live_status(root, LiveStatus("watching", "4 documents, up to date"))
        wait_for_text(browser, "4 documents, up to date")
        assert not browser.find_elements("css selector", ".live progress")


def test_an_answer_leads_to_its_sources_and_to_the_next_question(browser: Any, server: str) -> None:
    visit(browser, server, "ask?q=Who%20missed%20Marley%3F")
    wait_for_text(browser, "Who missed Marley?", "local search", "Sources", "Used for this answer", "Ask next")
    assert find(browser, ".extractive p").text.startswith("Extractive answer (no model)")
    find(browser, ".asked + p button").click()
    assert browser.execute_script("return document.activeElement.textContent") == "Sources"
    browser.execute_script("scrollTo(0, 0)")
    find(browser, "button.citation").click()
    mark = find(browser, ".passage mark")
    quote = find(browser, ".sources q").text
    assert find(browser, "section[aria-label=Sources] h4").text == "one"
    assert (
        "".join(one.text for one in browser.find_elements("css selector", ".passage mark")).split()
        == quote.strip("“”").split()
    )
    assert browser.execute_script(IS_INSIDE, mark)
    assert browser.find_elements("css selector", ".passage a.mention")
    assert serious_findings(browser) == []
    keep(browser, "explorer_answer")
    find(browser, ".how > summary").click()
    details = find(browser, "section[aria-label='Used for this answer'] details")
    details.find_element("css selector", "summary").click()
    assert "SCROOGE" in details.text


def test_a_conversation_is_a_thread_that_stays_while_other_pages_are_read(browser: Any, server: str) -> None:
    visit(browser, server, "ask")
    find(browser, ".follow-ups button").click()
    wait_for_text(browser, "Sources", "Ask next")
    browser.execute_script("scrollTo(0, document.body.scrollHeight)")
    find(browser, ".follow-ups button").click()
    wait_until(lambda: len(browser.find_elements("css selector", ".turn")) == 2, PATIENCE_S)
    wait_until(lambda: len(browser.find_elements("css selector", ".turn section[aria-label=Sources]")) == 2, PATIENCE_S)
    questions = [one.text for one in browser.find_elements("css selector", ".turn h2.asked")]
    keep(browser, "explorer_thread")
    find(browser, "nav a[href='#/entities']").click()
    wait_for_text(browser, "Fezziwig")
    find(browser, "nav a[href='#/ask']").click()
    wait_until(lambda: browser.find_elements("css selector", ".turn"), PATIENCE_S)
    assert [one.text for one in browser.find_elements("css selector", ".turn h2.asked")] == questions
    find(browser, ".page-head .new").click()
    wait_for_text(browser, "What do you want to know?")


def test_an_answer_is_saved_as_markdown_that_loads_and_links_nothing(browser: Any, server: str) -> None:
    visit(browser, server, "ask?q=What%20did%20Bob%20Cratchit%20hear%3F&method=basic")
    wait_for_text(browser, "basic search", "Sources")
    browser.execute_script(
        "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return ''; };"
        "HTMLAnchorElement.prototype.click = () => {};"
    )
    browser.find_element("xpath", "//button[contains(., 'Markdown')]").click()
    saved = wait_until(lambda: browser.execute_script("return window.saved"), PATIENCE_S)
    assert saved.startswith("# What did Bob Cratchit hear?\n") and "## Sources\n\n1. " in saved
    assert "index=carol" in saved and "window.pwned" in saved
    assert "<" not in saved and "](" not in saved


def test_the_strategies_are_shown_side_by_side(browser: Any, server: str) -> None:
    visit(browser, server, "ask?q=Who%20loved%20Scrooge%3F")
    wait_for_text(browser, "local search")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", find(browser, ".how > summary"))
    find(browser, ".how > summary").click()
    find(browser, "section[aria-label='Strategies'] button").click()
    wait_for_text(browser, "side by side", "Tokens taken")
    heads = [one.text for one in browser.find_elements("css selector", "table.strategies thead th")]
    assert len(heads) == 8 and {"balanced", "graph", "round_robin"} <= set(heads)
    assert browser.find_elements("css selector", "td.taken")
    keep(browser, "explorer_strategies")


def test_a_community_opens_and_closes_and_an_entity_shows_its_surroundings(browser: Any, server: str) -> None:
    visit(browser, server, "graph?view=communities")
    find(browser, ".canvas canvas.sigma-nodes")
    before = len(browser.find_elements("css selector", ".listing li"))
    find(browser, ".listing li button").click()
    find(browser, ".chosen button.main").click()
    n_parts = int(wait_for_text(browser, "Open:", " parts of the community").partition(" parts of")[0].split()[-1])
    assert len(browser.find_elements("css selector", ".listing li")) == n_parts  # the others are not listed
    keep(browser, "explorer_graph_open")
    find(browser, ".opened button").click()
    wait_until(lambda: len(browser.find_elements("css selector", ".listing li")) == before, PATIENCE_S)
    find(browser, "form[role=search] input").send_keys("cratchit\ue007")
    find(browser, ".found li a").click()
    wait_for_text(browser, "around Bob Cratchit")
    assert "Bob Cratchit" in find(browser, ".chosen h2").text
    keep(browser, "explorer_graph_surroundings")
    assert "Person" in find(browser, ".legend").text
    find(browser, ".chosen input[name=to]").send_keys("Belle\ue007")
    wait_for_text(browser, "Path: Bob Cratchit – Scrooge – Belle")
    keep(browser, "explorer_graph_path")
    find(browser, ".chosen a[href^='#/entities']").click()
    wait_for_text(browser, "Mentions in their sentences")


def test_the_graph_begins_with_the_best_connected_entities_and_leads_to_the_communities(
    browser: Any, server: str
) -> None:
    visit(browser, server, "graph")
    listed = find(browser, ".listing").text
    assert "Scrooge" in find(browser, ".listing li").text and "Person" in find(browser, ".legend").text
    assert not browser.find_elements("css selector", "select[name=level]")
    find(browser, ".listing li button").click()
    find(browser, ".chosen input[name=to]").send_keys("Belle\ue007")
    wait_for_text(browser, "Path: Scrooge – ")
    find(browser, ".tabs a").click()  # the address is the same
    wait_until(lambda: find(browser, ".listing").text == listed, PATIENCE_S)
    find(browser, ".tabs a:last-child").click()
    wait_for_text(browser, "communities")
    assert browser.find_elements("css selector", "select[name=level]")


def test_small_communities_are_folded_and_the_ring_around_an_entity_has_no_overlaps(browser: Any, server: str) -> None:
    visit(browser, server, "graph")
    folded, shown, edges, nearest = browser.execute_async_script(
        """const done = arguments[0];
        const many = (n, make) => Array.from({ length: n }, (_, number) => ({ number, title: "", ...make(number) }));
        import("/static/parts/graph_model.js").then(({ GraphModel }) => {
          const nodes = many(30, (i) => ({ kind: "community", size: i > 1 ? 2 : 50 - i }));
          const model = new GraphModel(), ring = new GraphModel();
          const folded = model.addLevel({ nodes, edges: [{ source: 0, target: 1 }, { source: 0, target: 9 }] }, false);
          ring.addAround({ nodes: many(90, (i) => ({ kind: "entity", size: 1, type: i % 2 ? "A" : "B" })), edges: [] });
          const places = [...ring.nodes.values()];
          const gaps = places.flatMap((a, i) => places.slice(i + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y)));
          done([folded.length, model.nodes.size, model.edges.size, Math.min(...gaps)]);
        });"""
    )
    assert (folded, shown, edges) == (28, 2, 1) and nearest > 1


def test_the_theme_is_chosen_and_stays_in_the_tab(browser: Any, server: str) -> None:
    luminance = f"{LUMINANCE} return luminance(getComputedStyle(document.body).backgroundColor)"
    visit(browser, server, "entities")
    find(browser, ".theme option[value=dark]").click()
    for _ in range(2):
        assert browser.execute_script(luminance) < 0.05
        browser.refresh()
        wait_for_text(browser, "Fezziwig")
    find(browser, ".theme option[value=system]").click()
    assert browser.execute_script(luminance) > 0.9


def test_a_click_on_a_disc_of_the_picture_chooses_it_and_a_type_narrows_the_picture(browser: Any, server: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    visit(browser, server, "graph?view=communities")
    canvas = find(browser, ".canvas canvas.sigma-mouse")
    wait_for_text(browser, "Shown")
    size = canvas.size
    places = [(x, y) for x in range(-4, 5) for y in range(-4, 5)]
    for x, y in sorted(places, key=lambda place: place[0] ** 2 + place[1] ** 2):
        ActionChains(browser).move_to_element_with_offset(
            canvas, x * size["width"] // 10, y * size["height"] // 10
        ).click().perform()
        if browser.find_elements("css selector", ".chosen"):
            break
    assert find(browser, ".chosen h2").text
    option = find(browser, "select[name=type] option:nth-child(2)")
    name = option.get_attribute("value")
    option.click()
    wait_until(lambda: f"type={name.replace(' ', '+')}" in browser.current_url, PATIENCE_S)
    wait_for_text(browser, "communities")


def test_the_tree_and_the_treemap_lead_to_a_report_with_findings_and_sources(browser: Any, server: str) -> None:
    visit(browser, server, "communities")
    find(browser, "ul.tree a").click()
    wait_for_text(browser, "Report", "Rating", "Sources", "Entities")
    places = [one.text for one in browser.find_elements("css selector", "section[aria-label=Report] a.citation")]
    assert places[0] == "1" and not browser.find_elements("css selector", "section[aria-label=Report] .data")
    named = [
        one.text for one in browser.find_elements("css selector", "section[aria-label=Report] > ol:not(.findings) a")
    ]
    assert len(named) >= len(set(places)) and not any(name.isdigit() for name in named)
    visit(browser, server, "communities?view=treemap")
    boxes = wait_until(lambda: browser.find_elements("css selector", ".treemap li"), PATIENCE_S)
    areas = [one.size["width"] * one.size["height"] for one in boxes]
    assert areas[0] == max(areas)
    boxes[0].find_element("css selector", "a").click()
    wait_until(
        lambda: "view=treemap&parent" in browser.current_url or "/communities/" in browser.current_url, PATIENCE_S
    )


def test_entities_are_searched_and_one_shows_names_and_sentences(browser: Any, server: str) -> None:
    visit(browser, server, "entities")
    find(browser, "input[name=search]").send_keys("cratchit\ue007")
    wait_until(lambda: "search=cratchit" in browser.current_url, PATIENCE_S)
    wait_until(lambda: "Fezziwig" not in find(browser, "main").text, PATIENCE_S)
    find(browser, "td a").click()
    wait_for_text(
        browser, "Bob Cratchit", "Person", "Mentions in their sentences", "The clerk in the tank was Bob Cratchit."
    )
    assert "Bob Cratchit" in [one.text for one in browser.find_elements("css selector", ".sentences strong")]
    keep(browser, "explorer_entity")
    sentence = find(browser, ".sentences li").text
    find(browser, ".sentences cite a").click()
    find(browser, "mark")
    assert marked(browser) in sentence


def test_the_keyboard_alone_reaches_every_page_an_answer_and_its_source(browser: Any, server: str) -> None:
    visit(browser, server, "ask")
    wait_for_text(browser, "Examples from this index")
    tab_to(browser, "e.name === 'q'")
    press(browser, "Who missed Marley?", "\ue007")
    wait_for_text(browser, "local search", "Sources")
    tab_to(browser, "e.className === 'citation'")
    press(browser, "\ue007")
    wait_until(
        lambda: browser.execute_script("return document.activeElement.textContent.startsWith('Source ')"), PATIENCE_S
    )
    press(browser, "\ue00c")
    wait_until(lambda: not browser.find_elements("css selector", ".passage"), PATIENCE_S)
    assert browser.execute_script("return document.activeElement.className") == "citation"
    for page in ("graph", "communities", "entities", "documents", "snapshots", "quality"):
        browser.execute_script("document.activeElement.blur()")
        tab_to(browser, f"e.getAttribute('href') === '#/{page}'")
        press(browser, "\ue007")
        wait_for_text(browser, PAGES[page][0], *PAGES[page][1:2])
        wait_until(lambda: browser.execute_script("return document.activeElement.id === 'title'"), PATIENCE_S)


def test_the_keyboard_alone_opens_a_community_of_the_graph(browser: Any, server: str) -> None:
    visit(browser, server, "graph?view=communities")
    find(browser, ".listing li button")
    tab_to(browser, "e.classList.contains('canvas')")
    press(browser, "+", "\ue014", "0")
    tab_to(browser, "e.matches('.listing button')")
    press(browser, "\ue007")
    find(browser, ".chosen")
    browser.execute_script("document.querySelector('.zoom button').focus()")
    tab_to(browser, "e.matches('.chosen button.main')")
    press(browser, "\ue007")
    wait_for_text(browser, "Open:")


def test_every_focused_element_is_seen(browser: Any, server: str) -> None:
    visit(browser, server, "entities")
    find(browser, "td a")
    for _ in range(20):
        press(browser, "\ue004")
        assert browser.execute_script(
            "const e = document.activeElement; const s = getComputedStyle(e), b = e.getBoundingClientRect();"
            "return e === document.body || (s.outlineStyle !== 'none' && b.width > 0)"
        )


@pytest.mark.parametrize("page", ["ask?q=Who%20missed%20Marley%3F", "graph", "entities", "communities"])
def test_dark_mode_is_dark_with_readable_contrast(browser: Any, server: str, page: str) -> None:
    scheme(browser, "dark")
    visit(browser, server, page)
    wait_for_text(browser, "Snapshot ")
    keep(browser, f"explorer_{page.partition('?')[0]}_dark")
    assert serious_findings(browser) == []
    for selector in ("body", "header a", "h1", "label", "main a", "main button", ".count", ".snapshot"):
        for element in browser.find_elements("css selector", selector)[:3]:
            assert browser.execute_script(CONTRAST, element) >= 4.5, selector
    assert (
        browser.execute_script(f"{LUMINANCE} return luminance(getComputedStyle(document.body).backgroundColor)") < 0.05
    )


HOSTILE_PAGES = (
    *("ask?q=Who%20is%20Scrooge%3F", "graph", "communities", "communities?view=treemap", "communities?view=reports"),
    *("communities/0", "entities", "entities/0", "documents", "documents/0", "snapshots", "quality"),
)


@pytest.mark.parametrize("page", HOSTILE_PAGES)
def test_texts_of_documents_stay_text(browser: Any, server: str, page: str) -> None:
    visit(browser, server, page, "hostile")
    wait_for_text(browser, "Snapshot ")
    wait_until(lambda: not browser.find_elements("css selector", ".busy"), PATIENCE_S)
    if page not in ("snapshots", "quality", "graph"):
        text = wait_for_text(browser, "<script>" if "ask" not in page else "Sources")
        assert "\x1b" not in text and "\u202e" not in text
    assert browser.execute_script("return window.pwned") is None
    assert browser.find_elements("css selector", "main script, main img, main iframe, [onerror]") == []
    hrefs = browser.execute_script("return [...document.querySelectorAll('[href]')].map((e) => e.getAttribute('href'))")
    assert [one for one in hrefs if not one.startswith(("#", "/static/"))] == []
    assert is_fitting(browser)


def test_control_characters_of_a_document_are_shown(browser: Any, server: str) -> None:
    visit(browser, server, "documents/hostile.txt")
    text = wait_for_text(browser, "<script>window.pwned=1</script>", "javascript:window.pwned=3")
    assert "\u241b[31mred\ufffd" in text
    assert browser.execute_script("return window.pwned") is None


@pytest.fixture(scope="module")
def guarded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """Yield the address of a server with access rules, the key of all, and that of a reader of two.txt only."""
    rules = tmp_path_factory.mktemp("rules") / "access.yaml"
    filters = ("path=two.txt",)
    whole, narrow = add_key(rules, "editor", ["carol"], is_whole=True), add_key(rules, "reader", ["carol"], filters)
    build_view("carol", Root(root), filters, ViewRules())
    with running_server({"carol": root}, find_view, rules=FollowedRules(rules)) as running:
        yield running.url, whole, narrow


def test_a_server_with_access_rules_is_asked_with_a_key_of_the_session(browser: Any, guarded: tuple) -> None:
    address, key, _ = guarded
    visit(browser, address, "entities")
    wait_for_text(browser, "Key of this server")
    use_key(browser, "wrong")
    wait_for_text(browser, "Key of this server", "Forget the key")
    assert not browser.find_elements("css selector", ".snapshot")
    use_key(browser, key)
    wait_for_text(browser, "Fezziwig", "Change the key")
    kept = browser.execute_script("return [sessionStorage.getItem('graphrag-key'), localStorage.length]")
    assert kept == [key, 0]
    assert key not in browser.current_url


def test_a_reader_with_filters_sees_pages_of_the_documents_that_pass(browser: Any, guarded: tuple) -> None:
    address, _, key = guarded
    visit(browser, address, "entities")
    browser.execute_script("sessionStorage.setItem('graphrag-key', arguments[0])", key)
    for page, expected in (
        ("entities", "Tiny Tim"),
        ("documents", "two.txt"),
        ("graph", "Shown"),
        ("communities", "entit"),
    ):
        visit(browser, address, page)
        assert not {"FEZZIWIG", "Fezziwig", "one.txt", "hostile"} & set(wait_for_text(browser, expected).split())
    visit(browser, address, "quality")
    wait_for_text(browser, "Your key does not show figures of the whole index.", "Your key does not show costs.")
    browser.execute_script("sessionStorage.clear()")
