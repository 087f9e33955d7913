"""Benches: `python -m graphrag_pipeline_tests.bench [NAME ...] [OPTIONS]`; `--help` lists them."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from graphrag_pipeline_tests.bench.benches import BENCHES, SLOW, Workspace
from graphrag_pipeline_tests.bench.measuring import Figure, print_table, stage_seconds
from graphrag_pipeline_tests.bench.parity import given_peer_python


def main() -> int:
    """Run benches and print their figures; 1 if a limit does not hold."""
    arguments = _parse_arguments()
    known = BENCHES | SLOW
    chosen = arguments.names or [*BENCHES, *(SLOW if arguments.slow else ())]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start\n")
    print("| what | measured | limit | |\n|---|---|---|---|", flush=True)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="graphrag-bench-") as temporary:
        folder = Path(arguments.folder or temporary)
        workspace = Workspace(folder, given_peer_python(arguments.peer_python), arguments.record)
        for name in chosen:
            found = known[name](workspace)
            print_table(found)
            figures += found
        if arguments.stages:
            for root in sorted(path for path in folder.iterdir() if (path / "dagster").is_dir()):
                print(f"\n{root.name}\n\n| stage | seconds | | |\n|---|---|---|---|")
                print_table(stage_seconds(root))
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    return int(any(figure.is_over or figure.is_under for figure in figures))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="graphrag_pipeline_tests.bench", description="Measure whole commands.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join([*BENCHES, *SLOW])}; default: all fast"
    )
    parser.add_argument("--slow", action="store_true", help=f"also {', '.join(SLOW)}: many minutes")
    parser.add_argument("--stages", action="store_true", help="also the seconds of every stage")
    parser.add_argument("--folder", help="keep the roots here; default: a temporary folder, removed at the end")
    parser.add_argument("--peer-python", help="parity: Python of an environment with Microsoft GraphRAG")
    parser.add_argument("--record", action="store_true", help="parity: write its outputs to the data of the tests")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - {*BENCHES, *SLOW}):
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join([*BENCHES, *SLOW])}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
