"""The first program on docs/streams.md runs as it stands there, also a second time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_program_runs_as_pasted_and_appends_once(tmp_path: Path) -> None:
    found = re.search(r"## First use\n\n```python\n(.+?)```", (ROOT / "docs" / "streams.md").read_text(), re.DOTALL)
    assert found is not None
    program = found[1].replace("/tmp/streams", str(tmp_path / "streams"))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True, cwd=ROOT
        )
        assert [line.split()[1:] for line in done.stdout.splitlines()] == [
            [str(number), "b'order", f"{number}'"] for number in range(3)
        ]
