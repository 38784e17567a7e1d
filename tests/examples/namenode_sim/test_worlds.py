"""Simulated worlds: nothing is found in healthy ones, and planted bugs are. Each runs in a process of its own, because
what a crash leaves behind would be collected in the middle of another test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.namenode_sim.name_node import NameNode
from tests.examples.namenode_sim.bugs import BUGS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "namenode.md").read_text()

pytestmark = pytest.mark.timeout(300)


def worlds(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.examples.namenode_sim.worlds", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_world_with_faults_in_which_nothing_is_lost_the_same_each_time() -> None:
    said = worlds("--first", "1", "--seeds", "1")
    assert len(said.splitlines()) == 1, "no problem was found"
    numbers = re.match(r"seed 1: (\d+) acknowledged, (\d+) edits, \d+ asked again, fenced (\d+) times", said)
    assert numbers is not None
    assert int(numbers[1]) > 200 and int(numbers[2]) > 300 and int(numbers[3]) > 0
    assert worlds("--first", "1", "--seeds", "1") == said


@pytest.mark.parametrize("bug", ["answers-though-fenced", "tail-left-unread"])
def test_planted_bugs_are_found(bug: str) -> None:
    found = re.fullmatch(rf"{bug}: seed (\d+): .*\n", worlds("--bug", bug))
    assert found is not None
    assert int(found[1]) < 20, "the page says so"


def test_the_page_names_every_planted_bug() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*?) \|$", PAGE, re.MULTILINE))
    assert rows == {name: bug.what for name, bug in BUGS.items()}


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_planted_for_a_while_only(name: str) -> None:
    former = {key: getattr(*key) for key in BUGS[name].replacements()}
    with BUGS[name].planted():
        assert all(getattr(*key) is not value for key, value in former.items())
    assert all(getattr(*key) is value for key, value in former.items())
    assert NameNode._settled.__module__ == "examples.namenode_sim.name_node"
