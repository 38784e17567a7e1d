"""Load on a ledger: the figures are of the right shape and of the right entries; how large they are is not tested."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from benchmarks.ledger_load import ClosedLoop, cpu_seconds, main, percentiles
from bookkeeper.errors import ConfigError, LedgerFencedError
from bookkeeper.launchers.machine_speed import stretch
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Bookies, bookies, end_with_parent

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1, "--warm-up", 10)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    with bookies(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def embedded(tmp_path: Path) -> str:
    """The address of a cluster of one bookie inside the process."""
    return f"embedded://{tmp_path}/bk?bookies=1"


def run(*words: object) -> Result:
    """The command inside the test's process."""
    return CliRunner().invoke(main, list(map(str, words)), env={"BK_METADATA": None, "BK_PASSWORD": None})


def load(*words: object) -> Any:
    """What it measured."""
    done = run(*words)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*words: object, status: int = 1) -> str:
    """The one sentence that it ended with."""
    done = run(*words)
    assert (done.exit_code, done.stdout) == (status, ""), done.output
    assert isinstance(done.exception, SystemExit), "it was not caught"
    return done.stderr.splitlines()[-1]


def test_add_measures_what_it_was_asked_to_and_leaves_nothing(embedded: str) -> None:
    said = load("add", "-m", embedded, *ONE, "--count", 300, "--size", 7, "--window", 20)
    assert (said["op"], said["entries"], said["size"], said["window"], said["ensemble"]) == ("add", 300, 7, 20, "1/1/1")
    assert said["entries_per_s"] > 0
    assert said["cpu_us_client"] > 0
    assert 0 < said["p50_us"] <= said["p90_us"] <= said["p99_us"] <= said["p999_us"]
    assert "cpu_us_pids" not in said
    assert bk("ledger", "list", "-m", embedded, "--json").document == []


def test_read_takes_what_add_has_kept_both_ways(embedded: str) -> None:
    words = (*ONE, "--count", 200, "--many", 50, "--keep", "--pids", os.getpid(), "--protocol", "v2")
    kept = load("add", "-m", embedded, *words)
    assert kept["cpu_us_pids"] >= 0
    for mode in ("batch", "single"):
        said = load("read", kept["ledger"], "-m", embedded, "--mode", mode, "--rounds", 2)
        assert (said["op"], said["mode"], said["entries"]) == ("read", mode, 2 * 210)
        assert said["mb_per_s"] >= 0


def test_mistakes_are_one_sentence(embedded: str) -> None:
    assert "process ids, separated by commas" in refused("add", "-m", embedded, "--pids", "1,x", status=2)
    assert "no process 999999999" in refused("add", "-m", embedded, *ONE, "--pids", "999999999")
    assert "needs 3 bookies, but 1 can be used" in refused("add", "-m", embedded)
    assert "there is no ledger 55" in refused("read", 55, "-m", embedded)
    empty = bk("ledger", "append", "-m", embedded, *ONE[:6], "--password", "pw").out.strip()
    assert f"ledger {empty} is empty" in refused("read", empty, "-m", embedded, "--password", "pw")
    assert "password" in refused("read", empty, "-m", embedded)
    assert "--metadata URI" in refused("add", status=2)


def test_who_reads_at_a_misspelt_address_makes_no_cluster_there(tmp_path: Path) -> None:
    assert "there is no cluster in" in refused("read", 0, "-m", f"embedded://{tmp_path}/misspelt")
    assert os.listdir(tmp_path) == []


def test_an_interrupted_measurement_ends_quietly_and_leaves_nothing(cluster: Bookies) -> None:
    """Ctrl-C printed a traceback or nothing, and left an open ledger of which nobody knew the name."""
    for keep in (False, True):
        words = ["add", "-m", cluster.uri, "--count", "1000000000", *(["--keep"] if keep else [])]
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ledger_load", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with_parent,
        )
        assert process.stderr is not None
        named = re.fullmatch(r"writing to ledger (\d+)\n", process.stderr.readline())
        assert named is not None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60 * stretch())
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
