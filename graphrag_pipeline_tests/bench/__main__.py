"""Benches: `python -m graphrag_pipeline_tests.bench [NAME ...] [OPTIONS]`.

`--help` lists the benches and all options, `NAME --help` says what one bench does and which options it has.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import inspect
import os
import sys
import tempfile
from pathlib import Path

import graphrag_pipeline
from graphrag_pipeline_tests.bench.benches import BENCHES, SLOW, Workspace
from graphrag_pipeline_tests.bench.measuring import Figure, print_table, stage_seconds
from graphrag_pipeline_tests.bench.parity import N_QUESTIONS, given_peer_python

_PROGRAM = "python -m graphrag_pipeline_tests.bench"


def main() -> int:
    """Run benches and print their figures; 1 if a limit does not hold."""
    arguments = _parse_arguments()
    known = BENCHES | SLOW
    chosen = arguments.names or [*BENCHES, *(SLOW if arguments.slow else ())]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start\n")
    print("| what | measured | limit | |\n|---|---|---|---|", flush=True)
    figures: list[Figure] = []
    # An installed package is compiled. Without this, each command of a clone compiles it if Python may write no files.
    compileall.compile_dir(Path(graphrag_pipeline.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory(prefix="graphrag-bench-") as temporary:
        folder = Path(arguments.folder or temporary)
        peer_python = given_peer_python(arguments.peer_python)
        workspace = Workspace(
            folder,
            peer_python,
            arguments.record,
            arguments.questions,
            arguments.held_back,
            arguments.model,
            arguments.settings,
        )
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
    parser = argparse.ArgumentParser(prog=_PROGRAM, description="Measure whole commands.", add_help=False)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join([*BENCHES, *SLOW])}; default: all fast"
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this, or the help of one bench behind NAME")
    parser.add_argument("--slow", action="store_true", help=f"also {', '.join(SLOW)}: many minutes")
    _add_common_options(parser)
    _add_held_back_option(parser.add_argument_group("options of judged and operations"))
    _add_operations_options(parser.add_argument_group("options of operations"))
    _add_parity_options(parser.add_argument_group("options of parity"))
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - {*BENCHES, *SLOW}):
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join([*BENCHES, *SLOW])}")
    if arguments.help:
        (_parser_of(arguments.names[0]) if len(arguments.names) == 1 else parser).print_help()
        parser.exit()
    if not 1 <= arguments.questions <= N_QUESTIONS:
        parser.error(f"--questions {arguments.questions}: choose a number from 1 to {N_QUESTIONS}")
    if arguments.record and arguments.questions != N_QUESTIONS:
        parser.error(f"--record writes the outputs of all {N_QUESTIONS} questions; leave --questions out")
    return arguments


def _parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of one bench, for its help: what it does, from its docstrings, and its own options."""
    texts = [inspect.getdoc((BENCHES | SLOW)[name]) or ""]
    if importlib.util.find_spec(module := f"graphrag_pipeline_tests.bench.{name}"):
        texts.append(importlib.import_module(module).__doc__ or "")
    parser = argparse.ArgumentParser(
        prog=f"{_PROGRAM} {name}",
        description="\n\n".join(text.strip() for text in texts),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common_options(parser)
    if name in ("judged", "operations"):
        _add_held_back_option(parser)
    if name == "operations":
        _add_operations_options(parser)
    if name == "parity":
        _add_parity_options(parser)
    return parser


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stages", action="store_true", help="also the seconds of every stage")
    parser.add_argument("--folder", help="keep the roots here; default: a temporary folder, removed at the end")


def _add_held_back_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--held-back", action="store_true", help="ask the held-back half of the questions")


def _add_operations_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--model", action="store_true", help="extract and embed by the test server")
    parser.add_argument("--settings", metavar="FILE", help="YAML whose values replace those of the root")


def _add_parity_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--questions",
        type=int,
        default=N_QUESTIONS,
        metavar="N",
        help=f"compare N questions in each part instead of {N_QUESTIONS}; 10 take about a minute",
    )
    parser.add_argument(
        "--peer-python",
        metavar="PATH",
        help="Python of an environment with Microsoft GraphRAG; default: GRAPHRAG_PEER_PYTHON, else an environment is "
        "made in --folder",
    )
    parser.add_argument("--record", action="store_true", help="write its outputs to the data of the tests")


if __name__ == "__main__":
    sys.exit(main())
