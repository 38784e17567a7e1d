"""Owners of streams as real processes: killed, paused and woken as zombies, at moments counted in records."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo_kit.pause import pause
from segments.namespace import connect
from segments.position import Position
from tests.integration.processes import Bookies, Process, bookies, end_with_parent, until, until_async
from tests.integration.stream_program import AT_A_TIME, CONFIG, value_of
from tests.segments.clusters import values_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

ENDLESS = 10_000_000


class OwnerProcess(Process):
    """One ``stream_program``."""

    def start(self) -> OwnerProcess:
        with self._log.open("ab") as log:
            self._from = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.stream_program", *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(os.environ),
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        return self

    @property
    def acked(self) -> dict[int, Position]:
        """What it has printed so far."""
        lines = re.findall(r"^acked (\d+) (\d+):(\d+):(\d+)$", self.said, re.MULTILINE)
        return {int(number): Position(int(a), int(b), int(c)) for number, a, b, c in lines}

    def until_acked(self, count: int) -> None:
        until(lambda: len(self.acked) >= count or not self.running, 120, lambda: self.said[-2000:])
        assert self.running, self.said[-2000:]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    with bookies(tmp_path_factory.mktemp("bookies")) as found:
        yield found


async def check(uri: str, name: str, acked: dict[int, Position], next_seq: int) -> None:
    """Everything acknowledged stands where it was said to, and every record is there once, in order."""
    async with connect(uri) as namespace:
        stream = await namespace.open(name)
        async with stream.producer("numbers") as producer:  # recovers what the last owner left open
            values = await values_of(stream)
            assert values == [value_of(number) for number in range(len(values))]
            assert len(values) >= next_seq
            assert producer.next_seq == len(values)
            for number in random.Random(1).sample(sorted(acked), min(100, len(acked))):
                if len(values) - number < AT_A_TIME:
                    again = await producer.append(value_of(number), seq=number)
                    assert (again.duplicate, again.position) == (True, acked[number])
        assert await values_of(stream) == values


@pytest.mark.rule("C4", "C5", "C8")
async def test_owners_that_are_killed_one_after_the_other_lose_nothing_and_double_nothing(
    cluster: Bookies, tmp_path: Path
) -> None:
    """SEG-118"""
    rng = random.Random(3)
    acked: dict[int, Position] = {}
    for life in range(3):
        owner = OwnerProcess(f"owner-{life}", tmp_path, cluster.uri, "killed", str(ENDLESS)).start()
        try:
            owner.until_acked(rng.randrange(50, 900))
        finally:
            owner.kill()
        found = re.search(r"^owner \d+ (\d+)$", owner.said, re.MULTILINE)
        assert found is not None
        assert int(found[1]) >= len(acked), "the next owner knows all that was acknowledged"
        acked |= owner.acked
    await check(cluster.uri, "killed", acked, len(acked))


@pytest.mark.rule("C5")
async def test_a_paused_owner_that_wakes_up_can_do_nothing_more(cluster: Bookies, tmp_path: Path) -> None:
    """SEG-39"""
    zombie = OwnerProcess("zombie", tmp_path, cluster.uri, "paused", str(ENDLESS)).start()
    try:
        zombie.until_acked(200)
        await pause(zombie.pause, zombie.resume, cluster.uri)
        async with connect(cluster.uri) as namespace:
            stream = await namespace.open("paused")
            async with stream.producer("numbers") as producer:
                first = producer.next_seq
                for _ in range(50):
                    await producer.append(value_of(producer.next_seq))
                zombie.resume()
                await until_async(lambda: not zombie.running, 60, lambda: zombie.said[-2000:])
                assert re.search(r"^lost (OwnershipLostError|ProducerFencedError)", zombie.said, re.MULTILINE)
                for _ in range(50):
                    await producer.append(value_of(producer.next_seq))
        assert max(zombie.acked) < first, "it acknowledged nothing that the new owner had not found"
        await check(cluster.uri, "paused", zombie.acked, first + 100)
    finally:
        zombie.resume()
        zombie.kill()


@pytest.mark.rule("F2")
async def test_a_cluster_inside_the_process_that_is_killed_has_all_that_was_acknowledged(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/cluster?bookies=3"
    acked: dict[int, Position] = {}
    for life in range(2):
        owner = OwnerProcess(f"owner-{life}", tmp_path, uri, "inside", str(ENDLESS)).start()
        try:
            owner.until_acked(300)
        finally:
            owner.kill()
        acked |= owner.acked
    await check(uri, "inside", acked, len(acked))
    assert CONFIG.roll.max_records < len(acked), "it was killed after a roll"


async def test_a_bookie_that_is_killed_changes_no_result(cluster: Bookies, tmp_path: Path) -> None:
    owner = OwnerProcess("steady", tmp_path, cluster.uri, "steady", "3000").start()
    try:
        owner.until_acked(300)
        cluster["b2"].kill()
        owner.until_acked(1200)
        cluster.restart("b2")
        owner.until_said(r"(?m)^done$")
    finally:
        owner.kill()
        await asyncio.to_thread(cluster.all_up)
    assert len(owner.acked) == 3000
    await check(cluster.uri, "steady", owner.acked, 3000)
