"""Fixtures: indexes to ask. One is written by hand, two are built, one is Microsoft's of A Christmas Carol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX
from graphrag_pipeline_tests.support.roots import built_once, open_built

GERMAN = {
    "a.txt": "Albert Einstein traf Mileva Marić in Zürich. Sie heirateten im Jahr 1903.",
    "b.txt": "Albert Einstein studierte am Polytechnikum in Zürich. Später arbeitete Albert Einstein im Patentamt in "
    "Bern.",
    "c.txt": "Marcel Grossmann half Albert Einstein mit der Mathematik. Albert Einstein dankte ihm.",
}
CHINESE = {
    "一.txt": "清晨的雾还没有散，萧炎已经站在后山的石台上。他是萧家的少年，三年前忽然失去了全部力量，"
    "族里的人都说他不再是天才。萧炎没有回答，只是把手中的木剑举得更高。",
    "二.txt": "药老住在一枚旧戒指里，谁也不知道他活了多少年。他说话很慢，喜欢问一个问题：你是谁？你为什么要变强？",
    "三.txt": "城里的集市很热闹。卖糖人的老者说，昨夜天上落下一颗星，掉进了北边的湖。是谁先看见的，没有人记得。",
    "四.txt": "纳兰家的女儿薰儿坐在窗前写信。她写了又撕，最后只留下一句话：等你回来。",
}


@pytest.fixture(scope="session")
def german(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    return open_built(tmp_path_factory.mktemp("german") / "root", GERMAN)


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    return open_built(tmp_path_factory.mktemp("story") / "root", CHINESE)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    snapshot = small_index.freeze(tmp_path_factory.mktemp("small"))
    return GraphIndex(snapshot, Settings(), load_static_embeddings())


@pytest.fixture(scope="session")
def carol_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        folder.mkdir()
        import_graphrag(MICROSOFT_INDEX, folder, load_static_embeddings(), Settings())

    return built_once(tmp_path_factory.mktemp("carol"), "Microsoft's index", make).path


@pytest.fixture(scope="session")
def carol(carol_root: Path) -> Iterator[GraphIndex]:
    with GraphIndex.open(carol_root) as index:
        yield index
