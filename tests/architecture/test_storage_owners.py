"""Each piece of a disk's state is written by its owner alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import nodes

STORAGE = Path(__file__).resolve().parents[2] / "bookkeeper" / "storage"

OWNERS: dict[str, tuple[str, set[str]]] = {
    "an entry log": ("entry_log/entry_logs.py", {"dirty", "finished", "written"}),
    "the logs of a directory": ("entry_log/entry_logs.py", {"current", "next_log", "logs"}),
    "a group's number and state": (
        "journal/group_sequence.py",
        {"sequence", "file_id", "file_offset", "file_bytes", "state"},
    ),
    "the groups in memory": (
        "journal/group_sequence.py",
        {"durable", "in_flight", "blocked", "failure", "paused", "closed", "unlogged"},
    ),
    "the log of a ledger": (
        "ledger_logs/ledger_logs.py",
        {"writing", "journalled", "synced", "made", "ended", "buffered", "writable"},
    ),
    "when the journal writes": ("journal/write_schedule.py", {"busy", "began_at", "gap_left_s"}),
    "whether the disk takes adds": ("base/disk_state.py", {"now", "closing"}),
    "limbo": ("ledgers/unknowns.py", {"limbo", "index_damaged"}),
    "the ledgers": ("ledgers/ledger_table.py", {"ledgers", "dropped"}),
}
"""What is owned -> who writes it, and the names of its fields."""

BUILT_ELSEWHERE = {"scope", "snap", "state", "made"}
"""Names of values that are filled by who makes them: a checkpoint's scope, a manifest, a descriptor that is decoded."""


@cache
def assigned(path: Path) -> tuple[tuple[str, str, int], ...]:
    """(the object, the field, the line) of every assignment to a field of something other than ``self``."""
    return tuple(_assigned(path))


def _assigned(path: Path) -> Iterator[tuple[str, str, int]]:
    for node in nodes(path):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Attribute) and not (
                    isinstance(part.value, ast.Name) and part.value.id == "self"
                ):
                    yield ast.unparse(part.value).rpartition(".")[2], part.attr, part.lineno


@pytest.mark.parametrize("what", OWNERS)
def test_only_the_owner_writes_its_fields(what: str) -> None:
    owner, fields = OWNERS[what]
    strangers = [
        f"{path.relative_to(STORAGE)}:{line} sets {name}.{field}"
        for path in sorted(STORAGE.rglob("*.py"))
        if path != STORAGE / owner
        for name, field, line in assigned(path)
        if field in fields and name not in BUILT_ELSEWHERE
    ]
    assert strangers == []


def test_a_stranger_is_noticed(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.py"
    stranger.write_text("log.end, self.logs[1].dirty = 0, True\nself.current = 1\nlog.finished += 1\n")
    assert [field for _, field, _ in assigned(stranger)] == ["end", "dirty", "finished"]


def test_the_owners_are_there() -> None:
    for owner, _ in OWNERS.values():
        assert (STORAGE / owner).exists(), owner
