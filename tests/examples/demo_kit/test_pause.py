"""A process is paused between the transactions of its metadata."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from examples.demo_kit.pause import is_locked, pause


async def test_a_process_that_holds_the_lock_is_woken_and_stopped_again(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE t (x)")
    holder.execute("BEGIN IMMEDIATE")
    said: list[str] = []

    def go_on() -> None:
        said.append("go on")
        if said.count("go on") == 2:
            holder.execute("COMMIT")

    await pause(lambda: said.append("stop"), go_on, f"sqlite://{path}")
    assert said == ["stop", "go on", "stop", "go on", "stop"]
    assert not is_locked(path)
    holder.close()


async def test_other_stores_have_no_such_lock() -> None:
    said: list[str] = []
    await pause(lambda: said.append("stop"), lambda: said.append("go on"), "zk://127.0.0.1:1/ledgers")
    assert said == ["stop"]
