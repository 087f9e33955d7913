"""Files that a server holds over many publications, with readers beside.

    python -m graphrag_pipeline_tests.bench.publications [N_PUBLICATIONS]

The server is the command `serve` in a process of its own, on a root of three short documents. Three clients ask without
a pause. A publication is a change of the pointer between the last two snapshots; each twentieth is an edit of one
document, after which all earlier snapshots but one are pruned. File descriptors, mapped files and the space of removed
files have to be the same at the end as after a tenth of the publications (200 by default). Each figure is the lowest of
some seconds, since requests under way keep the former snapshot open; the last one comes after all requests.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.bench.serve import serving
from graphrag_pipeline_tests.support.open_files import OpenFiles, count_open_files
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put

N_PUBLICATIONS = 200
_PER_EDIT = 20
_N_CLIENTS = 3
_N_SPARE = 10  # a snapshot has about 40
_N_LOOKS = 30
_WAIT_S = 60.0
QUESTION = "Who is Bob Cratchit?"
REQUESTS = [
    *(
        ("/search", {"question": QUESTION, "method": method})
        for method in ("local", "global", "drift", "basic", "lazy")
    ),
    ("/search", {"question": QUESTION, "filters": ["id!=none"]}),
    *((f"/{kind}", None) for kind in ("entities", "documents", "reports", "relationships", "communities", "facets")),
]
"""Paths with the body of a POST, or None for a GET."""


def ask_until(is_over: threading.Event, url: str, first: int, statuses: Counter[str]) -> None:
    """Send the requests in turn until the end, and count their paths with statuses."""
    with httpx.Client(base_url=url, timeout=_WAIT_S) as client:
        for path, body in itertools.islice(itertools.cycle(REQUESTS), first, None):
            if is_over.is_set():
                return
            answer = client.post(path, json=body) if body else client.get(path)
            statuses[f"{path} {answer.status_code}"] += 1


def wait_for(url: str, snapshot: str) -> None:
    """Wait until the server follows a publication."""
    deadline = time.monotonic() + _WAIT_S
    while httpx.get(f"{url}/entities", timeout=_WAIT_S).json().get("snapshot") != snapshot:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the server does not follow snapshot {snapshot}")
        time.sleep(0.1)


def edit(root: Root, number: int) -> None:
    """Publish another text of one document."""
    put(root.path, "four.txt", f"Bob Cratchit carved goose number {number}.")
    build_tables(root, tuple(ALL_STAGES))


def count_least(folder: Path, process: int) -> OpenFiles:
    """Return the least that a process holds below a folder in some seconds."""
    looks = []
    for _ in range(_N_LOOKS):
        looks.append(count_open_files(folder, process))
        time.sleep(0.1)
    return min(looks, key=lambda look: (look.removed_bytes, look.n_files))


def measure(n_publications: int) -> bool:
    """Print what the server holds; returns whether that stays the same."""
    with tempfile.TemporaryDirectory(prefix="graphrag-publications-") as folder:
        root = make_root(Path(folder) / "carol")
        edit(root, 0)
        edit(root, 1)
        statuses: Counter[str] = Counter()
        seen = []
        with serving(root.path) as (port, process):
            url, is_over = f"http://127.0.0.1:{port}", threading.Event()
            clients = [
                threading.Thread(target=ask_until, args=(is_over, url, first, statuses)) for first in range(_N_CLIENTS)
            ]
            for client in clients:
                client.start()
            try:
                for number in range(1, n_publications + 1):
                    if number % _PER_EDIT == 0:
                        edit(root, number)
                        prune(root, 2, before=time.time() + 1)
                    else:
                        published = root.snapshots.current()
                        root.snapshots.point_at(next(i for i in root.snapshots.ids() if i != published))
                    wait_for(url, root.snapshots.current() or "")
                    if number % max(1, n_publications // 10) == 0:
                        seen.append(count_least(root.path, process))
                        print(f"{number} publications: {seen[-1]}", flush=True)
            finally:
                is_over.set()
                for client in clients:
                    client.join()
            seen.append(count_least(root.path, process))
            print(f"after the last request: {seen[-1]}")
        print(dict(sorted(statuses.items())))
    first, last = seen[0], seen[-1]
    return last.n_files <= first.n_files + _N_SPARE and last.removed_bytes <= first.removed_bytes


if __name__ == "__main__":
    sys.exit(0 if measure(int(sys.argv[1]) if sys.argv[1:] else N_PUBLICATIONS) else 1)
