"""``bk ledger explain``, and with it ``bk bookies safe-to-stop``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import bookies, until

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_a_ledger_with_one_copy_is_whole_and_one_failure_loses_it(embedded: str) -> None:
    ledger = int(bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE).out)
    found = bk("ledger", "explain", ledger, "-m", embedded, "--json").document
    assert found["whole"] and (found["unseen"], found["lost"], found["state"]) == (0, 0, "CLOSED")
    assert found["one_more"] == found["two_more"] == {"entries": 5, "bookies": ["b1"]}
    (each,) = found["ranges"]
    assert (each["first_entry"], each["last_entry"], each["open"]) == (0, 4, False)
    assert each["copies"] == [
        {"bookie": "b1", "location": "/default-rack", "state": "seen", "missing": 0, "reason": None}
    ]
    shown = bk("ledger", "explain", ledger, "-m", embedded)
    assert shown.status == 0 and "b1 seen" in shown.out and "everything (b1)" in shown.out
    bk("ledger", "explain", 4711, "-m", embedded).refused("there is no ledger 4711")


def test_what_is_where_after_a_bookie_was_killed_and_which_may_be_stopped(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3")) as three:
        two = ("--ensemble", 2, "--write-quorum", 2, "--ack-quorum", 2)
        ledger = int(bk("ledger", "append", "-m", three.uri, "--size", 100, "--count", 20, *two).out)
        one, other = bk("ledger", "explain", ledger, "-m", three.uri, "--json").document["two_more"]["bookies"]
        assert (
            bk("bookies", "safe-to-stop", one, "-m", three.uri).out == f"yes: {one} can be stopped (1 ledger checked)\n"
        )
        three[one].kill()
        until(lambda: three.states()[one] == "absent", 60, three.states)
        said = bk("ledger", "explain", ledger, "-m", three.uri)
        assert said.status == 1
        copies = [cell.strip() for line in said.out.splitlines() for cell in line.split("│")[2:3]]
        assert sorted(copies) == sorted([f"{one} gone", f"{other} seen"]), "each has a line"
        assert f"everything ({other})" in " ".join(said.out.split()) and f"bk ledger repair {ledger}" in said.out
        no = bk("bookies", "safe-to-stop", other, "-m", three.uri, "--json")
        assert no.status == 1
        document = json.loads(no.out)
        assert not document["safe"] and [each["ledger"] for each in document["obstacles"]] == [ledger]
        bk("bookies", "safe-to-stop", "b9", "-m", three.uri).refused("there is no bookie b9")
        assert bk("ledger", "underreplicated", "-m", three.uri).status == 0, "nobody has marked it"
        repaired = bk("ledger", "repair", ledger, "-m", three.uri)
        assert repaired.status == 0 and f"moved from {one} to" in repaired.out
        assert bk("ledger", "explain", ledger, "-m", three.uri).status == 0
        single = int(bk("ledger", "append", "-m", three.uri, "--size", 100, "--count", 20, *ONE).out)
        (holder,) = bk("ledger", "explain", single, "-m", three.uri, "--json").document["one_more"]["bookies"]
        three[holder].kill()
        until(lambda: three.states()[holder] == "absent", 60, three.states)
        lost = bk("ledger", "explain", single, "-m", three.uri)
        assert lost.status == 1 and "LOST for now: of 20 entries no bookie that is up has a copy" in lost.out
        assert lost.out.endswith(f"start the bookies that are gone: {holder}\n"), "nothing can be copied: no advice to"
