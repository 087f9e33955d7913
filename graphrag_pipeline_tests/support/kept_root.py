"""Very small roots of releases, kept as archives, so that later releases are tried on real files of earlier ones.

    python -m graphrag_pipeline_tests.support.kept_root

writes the root of the installed release. Run it once for each release and commit the archive; never write the archive
of an earlier release again. The same root gives the same archive. LanceDB names its files at random and a manifest has
its time, so a root that is built again differs in those.
"""

from __future__ import annotations

import lzma
import os
import tarfile
import tempfile
from pathlib import Path

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.storage.formats import installed_release
from graphrag_pipeline_tests.support.command_line import ONE_BUCKET
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.roots import build_tables, make_root

KEPT = REPOSITORY / "graphrag_pipeline_tests" / "data" / "roots"
ENDING = ".tar.xz"
MAX_BYTES = 300_000
DOCUMENTS = {
    "cratchit.txt": "The clerk Bob Cratchit carried Tiny Tim home. Tiny Tim blessed Scrooge.",
    "marley.txt": "Old Scrooge signed the register. Scrooge and Marley were partners for many years.",
}
_YEAR_2001 = 1_000_000_000
"""Time of change of every file, which may be a part of the versions of input files."""


def build_root(folder: Path) -> Root:
    """Write a root of this release with two documents, one bucket and a published snapshot, without any model."""
    root = make_root(folder, DOCUMENTS, ONE_BUCKET)
    for path in (folder / "input").iterdir():
        os.utime(path, (_YEAR_2001, _YEAR_2001))
    build_tables(root, tuple(ALL_STAGES))
    return root


def pack_root(folder: Path, archive: Path) -> None:
    """Write all files of a root into an archive: in one order, with one owner, time and mode."""
    with lzma.open(archive, "w", preset=9) as compressed, tarfile.open(fileobj=compressed, mode="w") as packed:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mtime = path.stat().st_size, _YEAR_2001
            with path.open("rb") as file:
                packed.addfile(entry, file)


def unpack_root(archive: Path, folder: Path) -> None:
    """Write the files of an archive into a folder, with their times."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def main() -> None:
    archive = KEPT / f"{installed_release()}{ENDING}"
    with tempfile.TemporaryDirectory() as working:
        pack_root(build_root(Path(working) / "root").path, archive)
    print(f"{archive}: {archive.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
