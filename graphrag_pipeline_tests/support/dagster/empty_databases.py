"""The empty databases of Dagster, as SQL text: `python -m graphrag_pipeline_tests.support.dagster.empty_databases`.

Run it when a new release of Dagster changes their layout. It writes the files that `storage/dagster_home.py` reads.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import dagster as dg

from graphrag_pipeline.storage.dagster_home import DATABASES, SCRIPTS


def main() -> None:
    """Write the script of every database."""
    with tempfile.TemporaryDirectory() as folder:
        with dg.DagsterInstance.local_temp(folder):
            pass
        for place in DATABASES.values():
            with closing(sqlite3.connect(Path(folder) / place)) as database:
                script = "\n".join(database.iterdump()) + "\n"
            (SCRIPTS / f"{Path(place).stem}.sql").write_text(script, encoding="utf-8")


if __name__ == "__main__":
    main()
