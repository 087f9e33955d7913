"""Random commands of several processes and machines, with kills, stops, damage and faults of the store between them.

    python -m graphrag_pipeline_tests.torture [--kind local|file|s3] [--seconds 120] [--seed 1] [--processes 3]

`make torture SECONDS=... SEED=...` runs all three kinds. The seed chooses what is done; when a process gets its turn is
up to the system. A run ends with `index --recluster` without faults: then every machine, and one that joins only now,
must have what a root made from nothing has (`end.py`). Exit status 1 if a promise was broken; each violation is printed
with its command.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from graphrag_pipeline_tests.torture.run import KINDS, torture


def main() -> int:
    """Run the kinds that are asked for."""
    parser = argparse.ArgumentParser(prog="graphrag_pipeline_tests.torture", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append", help="where the index lies; default: all in turn")
    parser.add_argument("--seconds", type=float, default=120, help="of random commands, for each kind")
    parser.add_argument("--seed", type=int, default=1, help="what is done, in which order")
    parser.add_argument("--processes", type=int, default=3, help="commands at a time")
    parser.add_argument("--folder", type=Path, help="a new folder for the roots, which stays; default: a temporary one")
    chosen = parser.parse_args()
    n_broken = 0
    for kind in chosen.kind or KINDS:
        if chosen.folder:
            folder = chosen.folder / kind
            folder.mkdir(parents=True)
            n_broken += torture(kind, folder, chosen.seconds, chosen.seed, chosen.processes)
            continue
        with tempfile.TemporaryDirectory(prefix="graphrag-torture-") as temporary:
            n_broken += torture(kind, Path(temporary), chosen.seconds, chosen.seed, chosen.processes)
    return int(n_broken > 0)


if __name__ == "__main__":
    sys.exit(main())
