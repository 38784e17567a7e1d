"""What the runs of the suite are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.__main__ import asserts_at


@pytest.mark.parametrize(("speed", "shown"), [(0.1, "left       = 1"), (1.0, "assert 1 == 2")])
def test_what_failed_is_seen_at_every_speed(tmp_path: Path, speed: float, shown: str) -> None:
    """Cause: without rewriting, a failed assert shows nothing of what it compared."""
    (tmp_path / "test_one.py").write_text("def test_it():\n    left, right = 1, 2\n    assert left == right\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *asserts_at(speed), "test_one.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and shown in done.stdout, done.stdout
