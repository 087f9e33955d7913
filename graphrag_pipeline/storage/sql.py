"""SQL over a published snapshot: DuckDB views of its contract tables and of the stage tables it was joined from.

Views: the contract tables by name (`entities`, `community_reports`, ...) and the stage tables as `stage_<name>`. Read
only.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.storage.snapshots import Snapshot


def run_sql(snapshot: Snapshot, statement: str) -> pa.Table:
    """Run one statement.

    Raises:
        PipelineError: DuckDB refuses it; the message is DuckDB's, with the views there are.
    """
    import duckdb

    sources = _view_sources(snapshot)
    with duckdb.connect(":memory:") as connection:
        for name, paths in sources.items():
            files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
            connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM read_parquet([{files}])')
        try:
            return connection.sql(statement).to_arrow_table() if statement.strip() else pa.table({})
        except (duckdb.Error, AttributeError) as error:
            raise PipelineError(f"{error}\nviews: {', '.join(sorted(sources))}") from None


def _view_sources(snapshot: Snapshot) -> dict[str, list[Path]]:
    tables = {name: [snapshot.table_path(name)] for name in snapshot.manifest.tables}
    store = snapshot.folder.parent / "tables"
    stages: dict[str, list[Path]] = {}
    for key, head in sorted(snapshot.manifest.heads.items()):
        table, partition = key.split("/")
        stages.setdefault(f"stage_{table}", []).extend(
            store / table / partition / file["name"] for file in head["files"]
        )
    return tables | {name: paths for name, paths in stages.items() if paths and all(path.exists() for path in paths)}
