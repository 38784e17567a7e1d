"""``bk ledger append``: deferred sync, ids from the lines, and what does not go together."""

from __future__ import annotations

import json
import random

import pytest

from bookkeeper.admin.options import connected
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.ledger_handle import WriteHandle
from bookkeeper.ids import EntryId
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies


def read(cluster: Bookies, ledger: object) -> list[str]:
    said = bk("ledger", "read", ledger, "-m", cluster.uri)
    assert said.status == 0, said.err
    return said.out.splitlines()


@pytest.mark.rule("W11")
def test_with_deferred_sync_everything_is_forced_before_the_ledger_is_closed(
    cluster: Bookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[int, int]] = []
    force = WriteHandle.force

    async def watched(writer: WriteHandle) -> EntryId:
        before = int(writer.last_add_confirmed)
        forced.append((before, int(await force(writer))))
        return writer.last_add_confirmed

    monkeypatch.setattr(WriteHandle, "force", watched)
    lines = "".join(f"{number}\n" for number in range(1500)).encode()
    written = bk("ledger", "append", "-m", cluster.uri, "--deferred", "--json", stdin=lines).document
    assert written["entries"] == 1500
    assert forced == [(-1, 1499)], "the acknowledgements confirmed nothing, the force did"
    assert read(cluster, written["ledger"]) == [str(number) for number in range(1500)]
    sized = bk("ledger", "append", "-m", cluster.uri, "--deferred", "--size", 9, "--count", 20, "--json").document
    assert sized["entries"] == 20 and len(forced) == 2
    bk("ledger", "append", "-m", cluster.uri, stdin=b"x\n")
    assert len(forced) == 2, "what is durable when it is acknowledged needs no force"


@pytest.mark.rule("W11")
def test_a_force_that_fails_says_what_is_durable_and_what_is_only_written(
    cluster: Bookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    force = WriteHandle.force

    async def too_late(writer: WriteHandle) -> EntryId:
        cluster["b2"].kill()
        return await force(writer)

    monkeypatch.setattr(WriteHandle, "force", too_late)
    try:
        said = bk("ledger", "append", "-m", cluster.uri, "--deferred", stdin=b"a\nb\n")
        said.refused("b2", "has 0 confirmed entries; 2 more were written and are not known to be durable")
    finally:
        cluster.all_up()


@pytest.mark.parametrize("deferred", [(), ("--deferred",)])
def test_ids_come_from_the_lines_in_any_order(cluster: Bookies, deferred: tuple[str, ...]) -> None:
    numbers = list(range(700))
    random.Random(1).shuffle(numbers)
    blanks = [" ", "\t"]
    lines = "".join(f"{number}{blanks[number % 2]}the {number}th\n" for number in numbers).encode()
    written = bk("ledger", "append", "-m", cluster.uri, "--with-ids", "--json", *deferred, stdin=lines).document
    assert written["entries"] == 700
    assert read(cluster, written["ledger"]) == [f"the {number}th" for number in range(700)]
    blank = bk("ledger", "append", "-m", cluster.uri, "--with-ids", *deferred, stdin=b"1\n0   kept \n").out.strip()
    said = bk("ledger", "read", blank, "-m", cluster.uri, "--json").out.splitlines()
    assert [json.loads(line)["payload"] for line in said] == ["  kept ", ""]


def test_a_missing_id_ends_the_ledger_below_it_and_is_named(cluster: Bookies) -> None:
    said = bk("ledger", "append", "-m", cluster.uri, "--with-ids", stdin=b"0 a\n1 b\n3 d\n4 e\n")
    said.refused("no line has entry 2", "and 2 entries above it are not in it")
    ledger = int(said.err.partition("ledger ")[2].split()[0])
    shown = bk("ledger", "show", ledger, "-m", cluster.uri, "--json").document
    assert (shown["state"], shown["last_entry"]) == ("CLOSED", 1)
    assert read(cluster, ledger) == ["a", "b"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (b"0 a\nb\n", ["line 2 does not begin with an entry id", "b'b'"]),
        (b"-1 a\n", ["line 1 does not begin with an entry id"]),
        (b"9999999999999999999 a\n", ["line 1 does not begin with an entry id"]),
        (b"0 a\n1 b\n0 c\n", ["line 3", "entry 0"]),
    ],
)
def test_a_line_that_cannot_be_is_named(cluster: Bookies, lines: bytes, words: list[str]) -> None:
    bk("ledger", "append", "-m", cluster.uri, "--with-ids", stdin=lines).refused(*words, "confirmed entr")


def test_too_much_above_a_gap_is_refused_instead_of_waiting_for_ever(
    cluster: Bookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ClientConfig(pending_entries_max=50)
    monkeypatch.setattr("bookkeeper.admin.appending.connected", lambda uri, **more: connected(uri, small, **more))
    lines = "".join(f"{number} x\n" for number in range(2000)).encode()
    written = bk("ledger", "append", "-m", cluster.uri, "--with-ids", "--json", stdin=lines).document
    assert written["entries"] == 2000, "in order there is always room in time"
    lines = "".join(f"{number} x\n" for number in range(1, 100)).encode() + b"0 x\n"
    said = bk("ledger", "append", "-m", cluster.uri, "--with-ids", stdin=lines)
    said.refused("too much waits for entry 0, which no line has had so far", "has 0 confirmed entries")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--count", 5], "--count is for --size"),
        (["--size", 5, "-"], "give SOURCE or --size"),
        (["--size", 5, "--with-ids"], "give --with-ids or --size"),
        (["--deferred", "--when-short", "name_absent"], "--deferred needs every bookie"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_done(
    cluster: Bookies, words: list[object], says: str
) -> None:
    before = bk("ledger", "list", "-m", cluster.uri, "--json").document
    bk("ledger", "append", "-m", cluster.uri, *words).refused(says, status=2)
    assert bk("ledger", "list", "-m", cluster.uri, "--json").document == before


def test_help_has_examples() -> None:
    said = bk("ledger", "append", "--help").out
    assert "--deferred" in said and "seq 1000 | bk ledger append" in said
