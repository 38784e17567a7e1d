"""``bk bench``: the figures are of the right shape and of the right entries; how large they are is not tested."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from array import array
from typing import Any, cast

import pytest

from bookkeeper.admin.bench import ClosedLoop, cpu_seconds, percentiles
from bookkeeper.errors import ConfigError, LedgerFencedError
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, end_with_parent

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1, "--warm-up", 10)


def test_add_measures_what_it_was_asked_to_and_leaves_nothing(embedded: str) -> None:
    said = bk("bench", "add", "-m", embedded, *ONE, "--count", 300, "--size", 7, "--window", 20).document
    assert (said["op"], said["entries"], said["size"], said["window"], said["ensemble"]) == ("add", 300, 7, 20, "1/1/1")
    assert said["entries_per_s"] > 0
    assert said["cpu_us_client"] > 0
    assert 0 < said["p50_us"] <= said["p90_us"] <= said["p99_us"] <= said["p999_us"]
    assert "cpu_us_pids" not in said
    assert bk("ledger", "list", "-m", embedded, "--json").document == []


def test_read_takes_what_add_has_kept_both_ways(embedded: str) -> None:
    words = (*ONE, "--count", 200, "--many", 50, "--keep", "--pids", os.getpid(), "--protocol", "v2")
    kept = bk("bench", "add", "-m", embedded, *words).document
    assert kept["cpu_us_pids"] >= 0
    for mode in ("batch", "single"):
        said = bk("bench", "read", kept["ledger"], "-m", embedded, "--mode", mode, "--rounds", 2).document
        assert (said["op"], said["mode"], said["entries"]) == ("read", mode, 2 * 210)
        assert said["mb_per_s"] >= 0


def test_mistakes_are_one_sentence(embedded: str) -> None:
    bk("bench", "add", "-m", embedded, "--pids", "1,x").refused("process ids, separated by commas", status=2)
    bk("bench", "add", "-m", embedded, *ONE, "--pids", "999999999").refused("no process 999999999")
    bk("bench", "add", "-m", embedded).refused("needs 3 bookies, but 1 can be used")
    bk("bench", "read", 55, "-m", embedded).refused("there is no ledger 55")
    empty = bk("ledger", "append", "-m", embedded, *ONE[:6], "--password", "pw").out.strip()
    bk("bench", "read", empty, "-m", embedded, "--password", "pw").refused(f"ledger {empty} is empty")
    bk("bench", "read", empty, "-m", embedded).refused("password")


def test_an_interrupted_measurement_ends_quietly_and_leaves_nothing(cluster: Bookies) -> None:
    """Ctrl-C printed a traceback or nothing, and left an open ledger of which nobody knew the name."""
    for keep in (False, True):
        words = ["bench", "add", "-m", cluster.uri, "--count", "1000000000", *(["--keep"] if keep else [])]
        process = subprocess.Popen(
            [sys.executable, "-m", "bookkeeper.admin", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
        assert process.stderr is not None
        named = re.fullmatch(r"writing to ledger (\d+)\n", process.stderr.readline())
        assert named is not None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        kept = "closed and kept" if keep else "deleted"
        assert (process.returncode, out, err) == (130, "", f"bk: interrupted: ledger {named[1]} is {kept}\n")
        ledgers = bk("ledger", "list", "-m", cluster.uri, "--json").document
        assert [row["state"] for row in ledgers] == (["CLOSED"] if keep else [])


def test_percentiles_are_by_nearest_rank() -> None:
    spans = array("d", [n / 1e6 for n in range(1000, 0, -1)])
    assert percentiles(spans) == {"p50_us": 501.0, "p90_us": 901.0, "p99_us": 991.0, "p999_us": 1000.0}
    assert percentiles([0.000002]) == {"p50_us": 2.0, "p90_us": 2.0, "p99_us": 2.0, "p999_us": 2.0}


def test_the_cpu_of_a_process_is_counted_and_one_that_is_not_there_named() -> None:
    assert cpu_seconds(os.getpid()) > 0
    with pytest.raises(ConfigError, match="no process 999999999"):
        cpu_seconds(999_999_999)


class _Writer:
    """Confirms in order, when told to."""

    def __init__(self) -> None:
        self.open: list[asyncio.Future[int]] = []
        self.most = 0
        self._more = asyncio.Event()

    def append_nowait(self, payload: bytes) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.open.append(future)
        self.most = max(self.most, len(self.open))
        self._more.set()
        return future

    async def has(self, count: int) -> None:
        while len(self.open) < count:
            self._more.clear()
            await self._more.wait()


async def test_the_closed_loop_keeps_its_window_and_ends_when_all_are_confirmed() -> None:
    writer = _Writer()
    running = asyncio.ensure_future(ClosedLoop(cast(Any, writer), b"x", 10, 3).run())
    for number in range(10):
        await writer.has(1)
        writer.open.pop(0).set_result(number)
    assert len(await running) == 10
    assert writer.most == 3


async def test_the_closed_loop_ends_with_the_first_error() -> None:
    writer = _Writer()
    running = asyncio.ensure_future(ClosedLoop(cast(Any, writer), b"x", 10, 3).run())
    await writer.has(3)
    for future in writer.open:
        future.set_exception(LedgerFencedError("fenced"))
    with pytest.raises(LedgerFencedError):
        await running
