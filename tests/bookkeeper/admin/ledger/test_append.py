"""``bk ledger append``: deferred sync, ids from the lines, and what does not go together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import signal
import subprocess
import sys
from typing import cast

import pytest

from bookkeeper import BookKeeper
from bookkeeper.admin.ledger.append import RunsInFlight
from bookkeeper.admin.shared.options import connected
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import BadRequestError, DataMissingError, NoSuchEntryError
from bookkeeper.ids import EntryId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import run
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, end_with_parent, until


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
    said.refused("no line has the id 2", "and 2 entries with higher ids are not in it")
    ledger = int(said.err.partition("ledger ")[2].split()[0])
    shown = bk("ledger", "show", ledger, "-m", cluster.uri, "--json").document
    assert (shown["state"], shown["last_entry"]) == ("CLOSED", 1)
    assert read(cluster, ledger) == ["a", "b"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (b"0 a\nb\n", ["line 2 does not begin with an entry id", ": 'b'; "]),
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
    monkeypatch.setattr("bookkeeper.admin.ledger.append.connected", lambda uri, **more: connected(uri, small, **more))
    lines = "".join(f"{number} x\n" for number in range(2000)).encode()
    written = bk("ledger", "append", "-m", cluster.uri, "--with-ids", "--json", stdin=lines).document
    assert written["entries"] == 2000, "in order there is always room in time"
    lines = "".join(f"{number} x\n" for number in range(1, 100)).encode() + b"0 x\n"
    said = bk("ledger", "append", "-m", cluster.uri, "--with-ids", stdin=lines)
    said.refused("too many entries wait for entry 0, which no line has had so far", "has 0 confirmed entries")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--count", 5], "--count needs --size"),
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


class Appending:
    """A ``bk ledger append`` whose producer takes its time."""

    def __init__(self, cluster: Bookies, *words: str) -> None:
        self.cluster = cluster
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bookkeeper.admin", "ledger", "append", "-m", cluster.uri, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=end_with_parent,
        )
        assert self.process.stderr is not None
        found = re.fullmatch(rb"writing to ledger (\d+)\n", self.process.stderr.readline())
        assert found is not None
        self.ledger = int(found[1])

    def say(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def until_readable(self, lines: list[str]) -> None:
        """Another client finds them: they are confirmed, while the producer has not ended."""
        until(lambda: read_now(self.cluster, self.ledger) == lines, 30, lambda: read_now(self.cluster, self.ledger))
        assert self.process.poll() is None

    def end(self, number: signal.Signals | None = None) -> tuple[int, bytes, bytes]:
        if number is not None:
            self.process.send_signal(number)
            assert self.process.stderr is not None and self.process.stdout is not None
            err, out = self.process.stderr.read(), self.process.stdout.read()  # its input stays open
        else:
            out, err = self.process.communicate(timeout=60 * stretch())
        self.close()
        return self.process.wait(60), out, err

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def read_now(cluster: Bookies, ledger: int, count: int = 4) -> list[str]:
    """What the bookies have of the first entries, whether or not the writer has told anybody."""

    async def job() -> list[str]:
        found: list[str] = []
        async with (
            BookKeeper.connect(cluster.uri) as client,
            await client.open_ledger(ledger, recovery=False) as reader,
        ):
            with contextlib.suppress(NoSuchEntryError, DataMissingError):
                for entry in range(count):
                    found.append((await reader.read_unconfirmed(entry)).decode())
        return found

    return run(job())


def closed_with(cluster: Bookies, ledger: int) -> tuple[str, int | None]:
    shown = bk("ledger", "show", ledger, "-m", cluster.uri, "--json").document
    return shown["state"], shown["last_entry"]


@pytest.mark.parametrize("words", [(), ("--with-ids",)])
def test_lines_are_durable_as_they_come_and_an_interruption_keeps_them(
    cluster: Bookies, words: tuple[str, ...]
) -> None:
    """Standard input was read in blocks, on the loop: a slow producer's lines were durable only at its end, and Ctrl-C
    lost them without a word and closed an empty ledger."""
    lines = [b"0 one", b"1 two", b"2 three"] if words else [b"one", b"two", b"three"]
    slow = Appending(cluster, *words)
    slow.say(lines[0] + b"\n")
    slow.until_readable(["one"])
    slow.say(b"\n".join(lines[1:]) + b"\n3 half")
    slow.until_readable(["one", "two", "three"])
    status, out, err = slow.end(signal.SIGINT)
    assert (status, out) == (130, b"")
    assert err.decode() == (
        f"bk: interrupted: ledger {slow.ledger} is closed with 3 entries; "
        "the last 6 bytes form a line without its end, and were not written\n"
    )
    assert closed_with(cluster, slow.ledger) == ("CLOSED", 2)


def test_what_is_made_up_is_interrupted_in_good_order_too(cluster: Bookies) -> None:
    endless = Appending(cluster, "--size", "100", "--count", "1000000000")
    until(lambda: len(read_now(cluster, endless.ledger)) > 0, 30)
    status, out, err = endless.end(signal.SIGTERM)
    assert (status, out) == (143, b"")
    found = re.fullmatch(rb"bk: interrupted: ledger \d+ is closed with (\d+) entries, all of them durable\n", err)
    assert found is not None, err
    assert closed_with(cluster, endless.ledger) == ("CLOSED", int(found[1]) - 1)


def test_nobody_need_listen(cluster: Bookies) -> None:
    quiet = Appending(cluster)
    assert quiet.process.stdout is not None and quiet.process.stdin is not None
    quiet.process.stdout.close()
    quiet.say(b"kept\n")
    quiet.process.stdin.close()
    assert quiet.process.stderr is not None and quiet.process.stderr.read() == b""
    assert quiet.process.wait(60) == 0
    quiet.close()
    assert closed_with(cluster, quiet.ledger) == ("CLOSED", 0)


async def test_nothing_behind_a_line_that_is_too_long_is_written() -> None:
    """The rest of such a line comes with the next read, and would be an entry of its own."""

    class SlowWriter:
        def __init__(self) -> None:
            self.asked: list[list[bytes]] = []

        async def append_many(self, run: list[bytes]) -> range:
            self.asked.append(run)
            await asyncio.sleep(0.01)
            if any(len(line) > 4 for line in run):
                raise BadRequestError("too long")
            return range(len(run))

    writer = SlowWriter()
    runs = RunsInFlight(cast("WriteHandle", writer), 4)
    await runs.append([b"x"])
    with pytest.raises(BadRequestError):
        await runs.append([b"y", b"yyyyy"])
    assert writer.asked == [[b"x"], [b"y", b"yyyyy"]]
    assert runs.acknowledged == 1
