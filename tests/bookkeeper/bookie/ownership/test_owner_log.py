"""Owners on the disk: durable before anybody is told, through crashes, full disks and failed syncs."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.access import Resource
from bookkeeper.bookie.identity.owner_file import NAME, decode_owners, encode_group
from bookkeeper.bookie.ownership import owner_log
from bookkeeper.bookie.ownership.owner_log import OwnerLog
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import LedgerId
from bookkeeper.real import system_seams
from bookkeeper.seams import Disk, File, Seams
from bookkeeper.storage.base import durable_file
from bookkeeper.testing import World
from bookkeeper.testing.world import Node

A, B = Resource.parse("ledgers:a"), Resource.parse("ledgers:b")
PATH = f"/{NAME}"


def log_of(node: Node) -> OwnerLog:
    return OwnerLog(node.disk, "/", node.seams.workers.worker("owners"))


async def keep(log: OwnerLog, ledger: int, owner: Resource) -> BaseException | None:
    told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    log.keep(LedgerId(ledger), owner, told.set_result)
    return await told


def run(program: Coroutine[Any, Any, None], world: World) -> None:
    with world:
        world.run(program)


@pytest.mark.rule("X12b")
@pytest.mark.parametrize("seed", range(20))
def test_what_was_told_is_there_after_a_power_cut(seed: int) -> None:
    """Whatever a crash leaves of the file, every owner that was told durable is read again, and none is another one."""
    world = World(seed)
    node = world.node("b")

    told: dict[int, Resource] = {}
    problems: list[str] = []

    async def life(seams: Seams) -> None:
        log = log_of(node)
        if (damage := await log.read()) is not None:
            problems.append(damage)
        problems.extend(f"{each} is lost" for each, owner in told.items() if log.get(LedgerId(each)) != owner)
        for at in range(10):
            ledger, owner = node.life * 10 + at, (A, B)[at % 2]
            log.keep(LedgerId(ledger), owner, partial(done, ledger, owner))
            if world.rng.random() < 0.5:
                await asyncio.sleep(world.rng.random() * 0.002)

    def done(ledger: int, owner: Resource, error: BaseException | None) -> None:
        assert error is None
        told[ledger] = owner

    async def main() -> None:
        node.start(life)
        for _ in range(6):
            await asyncio.sleep(world.rng.random() * 0.01)
            node.crash(power=True)
            node.restart()
        await asyncio.sleep(1)
        assert not problems
        assert len(told) >= 10

    run(main(), world)


def test_many_that_come_together_share_one_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[File] = []
    real = durable_file.sync

    def counted(file: File) -> None:
        syncs.append(file)
        real(file)

    monkeypatch.setattr(owner_log, "sync", counted)
    world = World(1)

    async def main() -> None:
        log = log_of(world.node("b"))
        await log.read()
        assert await keep(log, 1, A) is None
        assert [await each for each in [asyncio.ensure_future(keep(log, at, B)) for at in range(2, 500)]] == [
            None
        ] * 498
        assert len(syncs) <= 2 and len(log) == 499 and log.get(LedgerId(499)) == B
        log.close()

    run(main(), world)


@pytest.mark.rule("K23", "K26")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_could_not_be_written_does_not_count_and_the_next_is_written_anew(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(2)
    node = world.node("b")

    async def main() -> None:
        log = log_of(node)
        await log.read()
        assert await keep(log, 1, A) is None
        real = durable_file.sync

        def failing(file: object) -> None:
            raise OSError(number, "it is broken")

        monkeypatch.setattr(owner_log, "sync", failing)
        assert isinstance(await keep(log, 2, B), OSError)
        assert log.get(LedgerId(2)) is None
        monkeypatch.setattr(owner_log, "sync", real)
        assert await keep(log, 3, B) is None
        log.close()
        again = log_of(node)
        assert await again.read() is None
        assert [again.get(LedgerId(each)) for each in (1, 2, 3)] == [A, None, B]
        again.close()

    run(main(), world)


def test_damage_is_told_and_what_can_be_read_stays() -> None:
    world = World(3)
    node = world.node("b")

    async def main() -> None:
        log = log_of(node)
        await log.read()
        for ledger in (1, 2, 3):
            assert await keep(log, ledger, A) is None
        log.close()
        file = node.disk.open(PATH)
        file.pwrite(b"\xff", 20)
        file.close()
        again = log_of(node)
        assert PATH in str(await again.read())
        assert [again.get(LedgerId(each)) for each in (1, 2, 3)] == [None, A, A]
        assert await keep(again, 4, B) is None
        again.close()
        third = log_of(node)
        assert await third.read() is None, "it was written anew"
        assert third.get(LedgerId(4)) == B and third.get(LedgerId(3)) == A
        third.close()

    run(main(), world)


def test_owners_of_ledgers_that_are_gone_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_log, "FORGET_MIN", 10)
    world = World(4)
    node = world.node("b")

    async def main() -> None:
        log = log_of(node)
        await log.read()
        for ledger in range(30):
            assert await keep(log, ledger, A) is None
        assert log.forget(lambda each: each >= 20) == [], "what is about to begin is not gone"
        gone = log.forget(lambda each: each >= 20)
        assert [ledger for ledger, _ in gone] == list(range(20))
        assert log.get(LedgerId(3)) is None and log.get(LedgerId(25)) == A
        size = len(node.disk.read_file(PATH))
        assert await keep(log, 99, B) is None
        assert len(node.disk.read_file(PATH)) < size
        log.close()
        again = log_of(node)
        await again.read()
        assert len(again) == 11
        again.close()

    run(main(), world)


def test_who_waits_when_the_bookie_stops_is_told() -> None:
    world = World(5)

    async def main() -> None:
        log = log_of(world.node("b"))
        await log.read()
        first, second = (asyncio.ensure_future(keep(log, at, A)) for at in (1, 2))
        await asyncio.sleep(0)
        log.close()
        found = [await first, await second]
        assert all(each is None or isinstance(each, BookKeeperError) for each in found)

    run(main(), world)


@pytest.mark.rule("K23", "X12b")
@pytest.mark.parametrize("seed", range(8))
def test_an_owner_that_a_start_has_read_stays_through_a_power_cut(seed: int) -> None:
    """The process that wrote it was killed before its sync; the next one has answered by it."""
    world = World(seed)
    node = world.node("b")

    async def main() -> None:
        log = log_of(node)
        await log.read()
        assert await keep(log, 1, A) is None
        log.close()
        file = node.disk.open(PATH)
        file.pwrite(encode_group({B: [2]}), file.size())
        file.close()
        again = log_of(node)
        assert await again.read() is None and again.get(LedgerId(2)) == B
        again.close()
        node.crash(power=True)
        found = decode_owners(node.disk.read_file(PATH), PATH)
        assert found.damage is None
        assert [(owner, list(ledgers)) for owner, ledgers in found.parts] == [(A, [1]), (B, [2])]

    run(main(), world)


@pytest.mark.rule("K23")
def test_after_a_failed_sync_nothing_more_goes_into_that_file(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(7)
    node = world.node("b")

    async def main() -> None:
        log = log_of(node)
        await log.read()
        assert await keep(log, 1, A) is None
        replaced: list[str] = []
        replace, real = durable_file.replace_file, durable_file.sync

        def counted(disk: Disk, path: str, data: bytes) -> None:
            replaced.append(path)
            replace(disk, path, data)

        def failing(file: object) -> None:
            raise OSError(errno.EIO, "it is broken")

        monkeypatch.setattr(owner_log, "replace_file", counted)
        for _ in range(2):
            monkeypatch.setattr(owner_log, "sync", failing)
            assert isinstance(await keep(log, 2, B), OSError)
            monkeypatch.setattr(owner_log, "sync", real)
            assert await keep(log, 3, B) is None
        assert replaced == [PATH] * 2
        log.close()

    run(main(), world)


def test_nobody_is_forgotten_while_the_file_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would not be written anew without them."""
    monkeypatch.setattr(owner_log, "FORGET_MIN", 10)
    world = World(8)

    async def main() -> None:
        log = log_of(world.node("b"))
        await log.read()
        for at in range(40):
            assert await keep(log, at, A) is None
        assert log.forget(lambda ledger: False) == []
        writing = asyncio.ensure_future(keep(log, 99, B))
        await asyncio.sleep(0)
        assert log.forget(lambda ledger: False) == []
        assert await writing is None
        assert len(log.forget(lambda ledger: ledger == 99)) == 40
        log.close()

    run(main(), world)


def open_below(directory: Path) -> list[str]:
    """The files below a directory that this process has open."""
    names = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.exists()]
    return [name for name in names if name.startswith(str(directory))]


@pytest.mark.rule("K26")
async def test_a_file_that_takes_no_group_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that is full now and then each of them would leave a descriptor behind."""
    seams = system_seams()
    log = OwnerLog(seams.disk, str(tmp_path), seams.workers.worker("owners"))
    await log.read()

    def full(file: object) -> None:
        raise OSError(errno.ENOSPC, "it is full")

    for at in range(0, 20, 2):
        assert await keep(log, at, A) is None
        with monkeypatch.context() as patched:
            patched.setattr(owner_log, "sync", full)
            assert isinstance(await keep(log, at + 1, B), OSError)
    assert await keep(log, 100, A) is None
    assert len(open_below(tmp_path)) == 1
    log.close()
