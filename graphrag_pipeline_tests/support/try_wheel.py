"""Try a built wheel as a user does: an empty environment, an own folder, `up`, the page, an answer (`make dist`).

`python -m graphrag_pipeline_tests.support.try_wheel WHEEL CONSTRAINTS`
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

_PATIENCE_S = 120
PAGES = ("/", "/static/explorer.js", "/static/vendor/sigma.min.js", "/openapi.json")


def main(wheel: str, constraints: str) -> None:
    """Install the wheel and use it; raise at the first thing that does not work."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        program = place / "env" / "bin"
        install = [program / "python", "-m", "pip", "install", "--quiet", "-c", Path(constraints).resolve()]
        subprocess.run([*install, Path(wheel).resolve()], check=True)
        (place / "documents").mkdir()
        (place / "documents" / "one.md").write_text("# Billing\n\nThe invoice service belongs to Ada Lovelace.\n")
        _use(program / "graphrag-pipeline", place)
    print(f"{Path(wheel).name}: installed, indexed, served and asked")


def _use(program: Path, place: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAPHRAG", "DAGSTER"))}
    command = [program, "up", "documents", "--no-browser"]
    with subprocess.Popen(command, cwd=place, env=kept, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = next(line.split()[1] for line in process.stdout if line.startswith("ask: "))
            _wait_until_ready(address)
            for page in PAGES:
                assert urllib.request.urlopen(address + page).read(), page
            body = json.dumps({"question": "Who owns the invoice service?"}).encode()
            request = urllib.request.Request(f"{address}/search", body, {"content-type": "application/json"})
            answer = json.load(urllib.request.urlopen(request))["answer"]
            assert "Ada Lovelace" in answer, answer
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def _wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{address}/ready")
            return
        except urllib.error.URLError:
            time.sleep(0.5)
    raise TimeoutError(address)


if __name__ == "__main__":
    main(*sys.argv[1:])
