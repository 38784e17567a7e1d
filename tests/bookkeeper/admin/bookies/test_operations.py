"""``bk bookies info``, ``bk bookies drain``, ``bk bookies forget``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, bookies, until


def append(cluster: Bookies, entries: int, *more: object) -> int:
    said = bk("ledger", "append", "-m", cluster.uri, "--size", 100, "--count", entries, *more)
    return int(said.out)


def test_how_full_bookies_are(cluster: Bookies) -> None:
    rows = bk("bookies", "info", "-m", cluster.uri, "--json").document
    assert [row["bookie"] for row in rows] == ["b1", "b2", "b3"]
    assert all(0 < row["free"] < row["total"] and row["problem"] is None for row in rows)
    said = bk("bookies", "info", "b2", "-m", cluster.uri)
    assert said.status == 0 and "iB" in said.out and "b1" not in said.out
    nobody = bk("bookies", "info", "b9", "-m", cluster.uri)
    assert nobody.status == 1 and "b9 is not registered" in " ".join(nobody.out.split())


def test_the_list_is_the_default_and_has_a_name(cluster: Bookies) -> None:
    listed = bk("bookies", "list", "-m", cluster.uri, "--json").document
    assert listed == bk("bookies", "-m", cluster.uri, "--json").document
    assert "drain" in bk("bookies", "--help").out
    bk("bookies", "frobnicate").refused("frobnicate", status=2)


def test_a_bookie_is_drained(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3", "b4")) as four:
        _drained(four)


def _drained(four: Bookies) -> None:
    ledgers = [append(four, 20) for _ in range(6)]
    bk("bookies", "drain", "b4", "-m", four.uri).refused("b4 is writable", "read-only")
    bk("bookies", "drain", "b9", "-m", four.uri).refused("there is no bookie b9; known are b1, b2, b3, b4")
    four["b4"].stop()
    four.each["b4"] = four.add("b4", "--read-only")
    until(lambda: four.states()["b4"] == "read-only", 60, four.states)
    plan = bk("bookies", "drain", "b4", "--dry-run", "-m", four.uri, "--json").document
    assert plan["ledgers"] >= 1 and plan["entries"] >= 20 and plan["bytes_about"] >= 2000
    assert plan["not_closed"] == plan["unreadable"] == []
    assert "to move" in bk("bookies", "drain", "b4", "--dry-run", "-m", four.uri).out
    done = bk("bookies", "drain", "b4", "-m", four.uri, "--throttle", "50M", "--json").document
    assert done["complete"] and not done["stuck"] and len(done["moved"]) == plan["copies"]
    assert {moved["from"] for moved in done["moved"]} == {"b4"}
    again = bk("bookies", "drain", "b4", "-m", four.uri)
    assert again.status == 0 and again.out.endswith("no ledger names it any more\n")
    for ledger in ledgers:
        assert all(row["missing"] == 0 for row in bk("ledger", "entries", ledger, "-m", four.uri, "--json").document)
    four["b4"].kill()
    assert len(bk("ledger", "read", ledgers[0], "-m", four.uri).out.splitlines()) == 20


def test_a_bookie_is_forgotten_when_nothing_needs_it(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3", "b4")) as four:
        ledger, deleted = append(four, 5, "--ensemble", 3), append(four, 5, "--ensemble", 4)
        member = str(bk("ledger", "entries", ledger, "-m", four.uri, "--json").document[0]["bookie"])
        bk("bookies", "forget", member, "--yes", "-m", four.uri).refused(
            f"{member} is registered (writable)", "drain it"
        )
        four[member].kill()
        until(lambda: four.states()[member] == "absent", 60, four.states)
        bk("bookies", "forget", member, "-m", four.uri).refused(
            f"{member} still has ledgers {ledger}, {deleted}", f"bk bookies drain {member}"
        )
        bk("bookies", "forget", member, "--dry-run", "-m", four.uri).refused(f"{member} still has ledgers {ledger}")
        assert bk("ledger", "delete", deleted, "-m", four.uri, "--yes").status == 0
        assert bk("bookies", "drain", member, "-m", four.uri).status == 0
        assert "can still be brought back" in bk("bookies", "drain", member, "-m", four.uri).out
        bk("bookies", "forget", member, "-m", four.uri).refused("can still be brought back", "--give-up-deleted")
        plan = bk("bookies", "forget", member, "--give-up-deleted", "--dry-run", "-m", four.uri)
        assert (plan.status, plan.out) == (0, f"may be forgotten: {member}; checked 1 ledger\n")
        asked = bk("bookies", "forget", member, "--give-up-deleted", "-m", four.uri, stdin=b"n\n")
        assert (asked.status, f"Forget {member}?" in asked.err) == (130, True)
        assert member in four.states(), "neither a dry run nor a no has done anything"
        done = bk("bookies", "forget", member, "--give-up-deleted", "--yes", "-m", four.uri, "--json").document
        assert done == {"forgotten": [member], "ledgers": 1, "given_up": [deleted], "dry_run": False}
        assert member not in four.states()
        bk("bookies", "forget", member, "-m", four.uri).refused(f"there is no bookie {member}; known are")
        bk("bookies", "forget", "-m", four.uri).refused("ID...", status=2)
        spare = sorted(four.states())[0]
        said = bk("bookies", "forget", "--help").out
        assert "Example" in said and "bk bookies forget b1 b2" in said and spare not in done["forgotten"]


def test_what_is_stuck_is_told_with_its_reason_and_the_status_says_so(tmp_path: Path) -> None:
    """Also beforehand: a dry run counted what is there, without a look at who could take it."""
    with bookies(tmp_path, ("b1", "b2", "b3")) as three:
        ledger = append(three, 5)
        three["b2"].kill()
        until(lambda: three.states()["b2"] == "absent", 60, three.states)
        plan = bk("bookies", "drain", "b2", "--dry-run", "-m", three.uri, "--json")
        (stuck,) = json.loads(plan.out)["stuck"]
        assert plan.status == 1 and stuck["ledger"] == ledger, "a plan promises what cannot be"
        assert "no bookie can take its place" in stuck["reason"]
        told = bk("bookies", "drain", "b2", "--dry-run", "-m", three.uri)
        assert told.status == 1 and "1 copy cannot move now" in told.out
        bk("bookies", "drain", "b9", "--dry-run", "-m", three.uri).refused("no bookie b9")
        writable = bk("bookies", "drain", "b1", "--dry-run", "-m", three.uri).out
        assert "writable, so the drain refuses them until they are read-only" in writable
        said = bk("bookies", "drain", "b2", "-m", three.uri)
        shown = " ".join(said.out.replace("│", " ").split())
        assert said.status == 1 and "stuck: 1" in shown and "no bookie can take the place of" in shown
        document = bk("bookies", "drain", "b2", "-m", three.uri, "--json")
        assert document.status == 1 and f'"ledger": {ledger}' in document.out
