"""``bk bookies decommission``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from bookkeeper.admin.bookies.decommission import show_progress
from bookkeeper.admin.shared.progress import progress_bar
from bookkeeper.replication.decommissioning.decommission import DecommissionProgress, DecommissionStep
from bookkeeper.replication.decommissioning.drain import DrainProgress
from tests.bookkeeper.admin.commands import Terminal, bk
from tests.integration.processes import Bookies, bookies, until


def append(cluster: Bookies, entries: int, *more: object) -> int:
    return int(bk("ledger", "append", "-m", cluster.uri, "--size", 100, "--count", entries, *more).out)


def test_a_running_bookie_goes_read_only_is_drained_stopped_and_forgotten(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3", "b4")) as four:
        ledgers = [append(four, 20) for _ in range(5)]
        bk("bookies", "decommission", "b4", "-m", four.uri).refused(
            "b4 is writable", "bk bookies read-only b4", "--while-writable"
        )
        bk("bookies", "decommission", "b9", "-m", four.uri).refused("there is no bookie b9")
        four["b4"].stop()
        four.each["b4"] = four.add("b4", "--read-only")
        until(lambda: four.states()["b4"] == "read-only", 60, four.states)
        still = bk("bookies", "decommission", "b4", "-m", four.uri, "--wait", 0)
        assert still.status == 1 and still.out.endswith(
            "b4 holds nothing any more, and still runs: stop it, and start this command again\n"
        )
        assert four.states()["b4"] == "read-only"
        four["b4"].kill()
        until(lambda: four.states()["b4"] == "absent", 60, four.states)
        done = bk("bookies", "decommission", "b4", "-m", four.uri, "--json").document
        assert done["complete"] and done["forgotten"] == ["b4"] and done["moved_entries"] == 0
        assert sorted(four.states()) == ["b1", "b2", "b3"]
        for ledger in ledgers:
            assert bk("ledger", "explain", ledger, "-m", four.uri).status == 0


def test_what_is_stuck_is_told_and_the_bookie_stays(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3")) as three:
        ledger = append(three, 5)
        three["b2"].kill()
        until(lambda: three.states()["b2"] == "absent", 60, three.states)
        said = bk("bookies", "decommission", "b2", "-m", three.uri, "--wait", 0)
        assert said.status == 1 and "stuck: 1" in said.out and "b2 not forgotten" in said.out
        assert f"ledger {ledger}, entries 0..4 on b2: no bookie can take the place of b2" in said.err
        document = bk("bookies", "decommission", "b2", "-m", three.uri, "--wait", 0, "--json")
        assert document.status == 1 and json.loads(document.out)["stuck"][0]["ledger"] == ledger
        assert three.states()["b2"] == "absent"


def test_on_a_terminal_a_bar_shows_the_step_and_reasons_stand_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar("b3", "looking for ledgers") as (update, say):
        show = partial(show_progress, update, "b3")
        show(DecommissionProgress(DecommissionStep.DRAINS, DrainProgress(ledgers=4, entries=10), 4, 0))
        say("ledger 7: it is [open]")
        drained = DrainProgress(ledgers=4, ledgers_done=4, entries=10, entries_done=10, bytes_sent=2048)
        show(DecommissionProgress(DecommissionStep.CHECKS, drained, 4, 3))
    shown = terminal.getvalue()
    assert "ledger 7: it is [open]" in shown
    assert "b3: checks the ledgers that it held" in shown and "3/4 ledgers whole, 2.0 KiB" in shown
