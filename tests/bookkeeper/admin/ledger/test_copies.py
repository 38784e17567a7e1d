"""``bk ledger read --bookie``: one bookie's copies, and what it lacks."""

from __future__ import annotations

import json

from bookkeeper.admin.ledger.copies import held_by
from bookkeeper.ids import BookieId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies


def test_who_holds_which_entries_of_a_ledger(cluster: Bookies) -> None:
    two = ("--ensemble", 2, "--write-quorum", 2, "--ack-quorum", 2)
    given = ("--size", 100, "--count", 50, "--password", "pw", *two)
    ledger = int(bk("ledger", "append", "-m", cluster.uri, *given).out)
    rows = bk("ledger", "entries", ledger, "-m", cluster.uri, "--json").document
    assert len(rows) == 2
    assert all(
        (row["entries"], row["held"], row["missing"], row["problem"]) == (["0..49"], 50, 0, None) for row in rows
    )
    spare = ({"b1", "b2", "b3"} - {row["bookie"] for row in rows}).pop()
    other = bk("ledger", "entries", ledger, "--bookie", spare, "-m", cluster.uri, "--json").document
    assert other == [{"bookie": spare, "entries": [], "held": 0, "missing": 0, "problem": None}]
    assert "0..49" in bk("ledger", "entries", ledger, "-m", cluster.uri).out
    bk("ledger", "entries", 777777, "-m", cluster.uri).refused("there is no ledger 777777")


def test_one_bookie_gives_what_it_must_have(cluster: Bookies) -> None:
    lines = b"".join(b"line %d\n" % at for at in range(12))
    quorums = ("--ensemble", 3, "--write-quorum", 2, "--ack-quorum", 2)
    number = int(bk("ledger", "append", "-m", cluster.uri, "--password", "pw", *quorums, stdin=lines).out)
    found: list[str] = []
    for name in ("b1", "b2", "b3"):
        said = bk("ledger", "read", number, "-m", cluster.uri, "--bookie", name)
        assert said.status == 0, said.err
        found += said.out.splitlines()
    assert sorted(found) == sorted(2 * lines.decode().splitlines()), "each entry twice"
    shown = bk("ledger", "read", number, "-m", cluster.uri, "--bookie", "b1", "--json", "--last", 2).out
    assert all("line" in json.loads(line)["payload"] for line in shown.splitlines())


def test_what_cannot_be_read_is_told_entry_by_entry(cluster: Bookies) -> None:
    number = int(bk("ledger", "append", "-m", cluster.uri, stdin=b"a\nb\n").out)
    bk("ledger", "read", number, "-m", cluster.uri, "--bookie", "nobody").refused(
        "there is no bookie nobody; known are b1, b2, b3"
    )
    said = bk("ledger", "read", number, "-m", cluster.uri, "--bookie", "b1", "--last", 3)
    assert said.status == 0 and said.out == "a\nb\n", "nothing is beyond the end"
    bk("ledger", "read", 987654, "-m", cluster.uri, "--bookie", "b1").refused("there is no ledger 987654")


def test_a_bookie_that_need_not_have_any_is_told_from_one_that_is_not_there(cluster: Bookies) -> None:
    one = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)
    number = int(bk("ledger", "append", "-m", cluster.uri, *one, stdin=b"a\n").out)
    (holder,) = bk("ledger", "show", number, "-m", cluster.uri, "--json").document["fragments"][0]["ensemble"]
    other = next(name for name in ("b1", "b2", "b3") if name != holder)
    said = bk("ledger", "read", number, "-m", cluster.uri, "--bookie", other)
    assert (said.status, said.out) == (0, "")
    assert said.err == f"{other} has no entries of ledger {number}, and should not have any\n"


def test_a_bookie_that_is_away_is_told_once(cluster: Bookies) -> None:
    number = int(bk("ledger", "append", "-m", cluster.uri, stdin=b"a\nb\n").out)
    cluster["b2"].kill()
    try:
        said = bk("ledger", "read", number, "-m", cluster.uri, "--bookie", "b2", "--json")
        assert said.status == 1 and f"b2 cannot be reached: from entry 0 of ledger {number} on nothing" in said.err
        assert [json.loads(line)["entry"] for line in said.out.splitlines()] == [0]
        assert len(bk("ledger", "read", number, "-m", cluster.uri, "--bookie", "b2").err.splitlines()) == 2
    finally:
        cluster.all_up()


def test_entries_are_those_of_its_place_in_each_fragment() -> None:
    b1, b2, b3, b4 = map(BookieId, ("b1", "b2", "b3", "b4"))
    spec = QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=1)
    metadata = LedgerMetadata.create(spec, (b1, b2, b3)).change_ensemble(6, (b1, b2, b4)).close(11, 100)
    assert list(held_by(metadata, "b3", 0, 11)) == [1, 2, 4, 5]
    assert list(held_by(metadata, "b4", 0, 11)) == [7, 8, 10, 11]
    assert list(held_by(metadata, "b1", 3, 8)) == [3, 5, 6, 8]
    assert list(held_by(metadata, "b1", 9, 99)) == [9, 11]
