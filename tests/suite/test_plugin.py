"""The order of a process's tests."""

from __future__ import annotations

from tests.suite.plugin import TOGETHER, in_groups
from tests.suite.selection import ROOT


def test_what_shares_processes_follows_each_other_and_the_rest_keeps_its_order() -> None:
    admin, meta = TOGETHER
    mixed = ["tests/a.py", f"{admin}b.py", "tests/c.py", f"{meta}d.py", f"{admin}e.py", "tests/f.py", f"{meta}x/g.py"]
    ordered = ["tests/a.py", f"{admin}b.py", f"{admin}e.py", "tests/c.py", f"{meta}d.py", f"{meta}x/g.py", "tests/f.py"]
    assert in_groups(mixed, str) == ordered


def test_the_directories_that_share_processes_exist() -> None:
    assert [directory for directory in TOGETHER if not (ROOT / directory).is_dir()] == []
