"""Pure steps of the index, one file per stage: tables in, tables out; no Dagster, no disk, no network."""
