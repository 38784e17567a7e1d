"""A run ends, names what went wrong, and leaves nothing behind, whatever its tests do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.suite.selection import ROOT

BAD_TESTS = """
import os, signal, subprocess, sys, time
import pytest

KEPT = []

def test_1_passes():
    assert True

@pytest.mark.timeout(0.5)
def test_2_hangs():
    signal.pause()

def test_3_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_4_fails():
    assert 1 == 2, "on purpose"

def test_5_leaves_a_child_that_does_not_want_to_end():
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    child.stdout.readline()
    KEPT.append(child)

def test_6_is_skipped():
    pytest.skip("for a reason")

def test_7_passes():
    assert True
"""
LEFT = re.compile(r"^  (\d+) .*signal.pause", re.MULTILINE)
DRIVER = """
import sys
from pathlib import Path
from tests.suite.plan import Plan
from tests.suite.run import Run
where = Path(sys.argv[1])
plan = Plan("inside 1", (str(where / "test_bad.py"),), False, every=True)
without = ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:timeout"]
settings = ["-q", "-s", *without, "-c", sys.argv[2], "--rootdir", sys.argv[1]]
outcome = Run(where, settings, {}, 1, lambda line: print(line, flush=True)).run([plan])
for one in outcome.ended:
    print("ended", one.test.partition("::")[2], one.outcome, one.text.splitlines()[:1])
print("good", outcome.is_good)
"""


def test_what_hangs_dies_fails_or_stays_is_named_and_all_the_others_are_run(tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text(BAD_TESTS)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(ROOT / "pyproject.toml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, done.stderr
    ended = [line.split()[1:3] for line in said.splitlines() if line.startswith("ended ")]
    assert ended == [
        ["test_1_passes", "passed"],
        ["test_4_fails", "failed"],
        ["test_5_leaves_a_child_that_does_not_want_to_end", "passed"],
        ["test_6_is_skipped", "skipped"],
        ["test_7_passes", "passed"],
    ], said
    assert "given up, nothing has happened" in said
    assert "test_bad.py::test_2_hangs (this machine has" in said
    assert "in test_2_hangs" in said, "where it stood is said"
    assert "ended (signal 9) while test_bad.py::test_3_is_killed ran" in said
    assert "on purpose" in said
    assert "tests have left 1 processes behind" in said
    assert "['Skipped: for a reason']" in said
    assert said.splitlines()[-1] == "good False"
    (pid,) = LEFT.findall(said)
    assert not Path(f"/proc/{pid}").exists()
