"""Benches: `python -m graphrag_pipeline_tests.bench [NAME ...] [OPTIONS]`."""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import tempfile
from pathlib import Path

import graphrag_pipeline
from graphrag_pipeline_tests.bench.benches import BENCHES, SLOW, Workspace
from graphrag_pipeline_tests.bench.measuring import Figure
from graphrag_pipeline_tests.bench.parity import N_QUESTIONS, PEER_PYTHON


def main() -> int:
    """Run benches and print their figures; 1 if a limit does not hold."""
    known = BENCHES | SLOW
    described = "\n".join(f"  {name:20} {(bench.__doc__ or '').splitlines()[0]}" for name, bench in known.items())
    parser = argparse.ArgumentParser(
        prog="python -m graphrag_pipeline_tests.bench",
        description=f"Measure whole commands. NAME is one of\n\n{described}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*known, []], help="default: all fast benches")
    parser.add_argument("--slow", action="store_true", help=f"also {', '.join(SLOW)}: many minutes")
    parser.add_argument("--folder", help="keep the roots here; default: a temporary folder, removed at the end")
    parser.add_argument("--held-back", action="store_true", help="judged, operations: take the held-back half")
    parser.add_argument("--model", action="store_true", help="operations: extract and embed by the test server")
    parser.add_argument("--questions", type=int, default=N_QUESTIONS, metavar="N", help="parity: of each part")
    parser.add_argument(
        "--peer-python",
        metavar="PATH",
        default=os.environ.get(PEER_PYTHON),
        help=f"parity: Python of an environment with Microsoft GraphRAG; default: {PEER_PYTHON}, else one is made in "
        "--folder",
    )
    parser.add_argument("--record", action="store_true", help="parity: write the peer's outputs to the tests' data")
    options = parser.parse_args()
    if options.record and options.questions != N_QUESTIONS:
        parser.error(f"--record writes the outputs of all {N_QUESTIONS} questions; leave --questions out")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start\n")
    print("| what | measured | limit | |\n|---|---|---|---|", flush=True)
    figures: list[Figure] = []
    # An installed package is compiled. Without this, each command of a clone compiles it if Python may write no files.
    compileall.compile_dir(Path(graphrag_pipeline.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory(prefix="graphrag-bench-") as temporary:
        peer_python = Path(options.peer_python) if options.peer_python else None
        folder = Path(options.folder or temporary)
        halves = options.held_back, options.model
        workspace = Workspace(folder, peer_python, options.record, options.questions, *halves)
        for name in options.names or [*BENCHES, *(SLOW if options.slow else ())]:
            for figure in known[name](workspace):
                print(figure.to_row(), flush=True)
                figures.append(figure)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    return int(any(figure.is_over or figure.is_under for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
