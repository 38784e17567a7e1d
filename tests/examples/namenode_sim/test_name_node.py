"""Two replicas and one journal: what was answered stays, whoever is active, and only one is."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.namenode_sim.decisions import ClientRequest
from examples.namenode_sim.errors import InodeExistsError, ReplicaNotActiveError
from examples.namenode_sim.image import write_image
from examples.namenode_sim.name_node import NameNode, NameNodeConfig, NameNodeRole
from journal_manager import (
    Discard,
    JournalNotFormattedError,
    JournalUnavailableError,
    Op,
    RetentionPolicy,
    TxId,
    capability,
    open_reader,
    open_snapshots,
    open_writer,
    read_ops,
)
from journal_manager.edits.ops import encode_op
from journal_manager.hdfs import EditsReader, decode_hdfs_op, encode_edits_header

NUMBERS = itertools.count()
CONFIG = NameNodeConfig(checkpoint_edits=5, housekeeping_s=0.01, segment_edits=10, retention=RetentionPolicy(2))


@asynccontextmanager
async def replicas(uri: str, count: int = 2) -> AsyncIterator[list[NameNode]]:
    clock = itertools.count(1_795_263_548_337)
    nodes = [NameNode(uri, f"nn{n}", now_ms=lambda: next(clock), config=CONFIG) for n in range(1, count + 1)]
    for node in nodes:
        await node.start()
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.close()


def journal() -> str:
    return f"mem:namenode-{next(NUMBERS)}"


def asked(verb: str, call: int = -2, client: bytes = b"", **arguments: Any) -> ClientRequest:
    return ClientRequest(verb, arguments, client, call)


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    for _ in range(2000):
        found = holds()
        if found if isinstance(found, bool) else await found:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to hold")


def image(node: NameNode) -> bytes:
    return b"".join(write_image(node.namespace))


async def test_a_standby_follows_and_takes_over_with_all_that_was_answered() -> None:
    async with replicas(journal()) as (one, two):
        await one.become_active()
        for n in range(12):
            await one.submit(asked("mkdirs", path=f"/d{n}"))
        await until(lambda: two.namespace.txid == 12)
        assert image(one) == image(two)
        await one.close()
        await two.become_active()
        assert await two.look("/d11") is not None
        await two.submit(asked("mkdirs", path="/after"))
        assert (two.namespace.txid, two.role) == (13, NameNodeRole.ACTIVE)


async def test_taking_over_finalizes_the_segment_of_who_is_gone() -> None:
    uri = journal()
    async with replicas(uri) as (one, two):
        await one.become_active()
        for n in range(3):
            await one.submit(asked("mkdirs", path=f"/d{n}"))
        await one.close()
        await two.become_active()
        await two.submit(asked("mkdirs", path="/after"))
        async with await open_reader(uri) as reader:
            assert [(each.first, each.last) for each in await reader.segments()] == [(1, 3), (4, None)]


async def test_standbys_begin_no_segment() -> None:
    uri = journal()
    async with replicas(uri) as (one, _):
        await asyncio.sleep(0.05)
        with pytest.raises(JournalNotFormattedError):
            await open_reader(uri)
        await one.become_active()
        await one.submit(asked("mkdirs", path="/a"))
        async with await open_reader(uri) as reader:
            [segment] = await reader.segments()
            assert (segment.first, segment.in_progress) == (1, True)


async def test_a_standby_that_cannot_read_on_tries_again_and_applies_nothing_twice() -> None:
    async with replicas(journal()) as (one, two):
        failed: list[int] = []
        apply = two._apply_edit

        def fails_at_first(edit: Op) -> None:
            if edit.txid % 3 == 0 and edit.txid not in failed:
                failed.append(edit.txid)
                raise JournalUnavailableError("for a test")
            apply(edit)

        two._apply_edit = fails_at_first  # type: ignore[method-assign]
        await one.become_active()
        for n in range(7):
            await one.submit(asked("mkdirs", path=f"/d{n}"))
        await until(lambda: two.namespace.txid == 7)
        assert failed == [3, 6]
        assert (two.stats.applied, two.role) == (7, NameNodeRole.STANDBY)
        assert image(one) == image(two)


async def test_who_cannot_read_all_edits_does_not_become_active() -> None:
    uri = journal()
    async with replicas(uri) as (one, two):
        await one.become_active()
        for n in range(3):
            await one.submit(asked("mkdirs", path=f"/d{n}"))
        await until(lambda: two.namespace.txid == 3)

        def fail(edit: Op) -> None:
            raise JournalUnavailableError("for a test")

        apply, two._apply_edit = two._apply_edit, fail  # type: ignore[method-assign]
        await one.submit(asked("mkdirs", path="/d3"))
        with pytest.raises(JournalUnavailableError):
            await two.become_active()
        assert two.role is NameNodeRole.STANDBY
        with pytest.raises(ReplicaNotActiveError):
            await two.submit(asked("mkdirs", path="/x"))
        two._apply_edit = apply  # type: ignore[method-assign]
        await two.become_active()
        assert two.namespace.txid == 4


async def test_a_standby_answers_nothing() -> None:
    async with replicas(journal()) as (one, two):
        await one.become_active()
        with pytest.raises(ReplicaNotActiveError, match="nn2 is standby"):
            await two.submit(asked("mkdirs", path="/a"))
        with pytest.raises(ReplicaNotActiveError):
            await two.look("/")


async def test_who_was_overtaken_answers_nothing_more_and_stands_by_with_what_was_written() -> None:
    async with replicas(journal()) as (one, two):
        await one.become_active()
        await one.submit(asked("mkdirs", path="/a"))
        await two.become_active()
        with pytest.raises(ReplicaNotActiveError, match="nn1 is active no more"):
            await one.submit(asked("mkdirs", path="/zombie"))
        assert (one.role, one.stats.fenced) == (NameNodeRole.FENCED, 1)
        assert one.namespace.find("/zombie") is not None, "its memory has more than the journal"
        await two.submit(asked("mkdirs", path="/b"))
        await one.become_standby()
        await until(lambda: one.namespace.txid == two.namespace.txid)
        assert image(one) == image(two)
        assert one.namespace.find("/zombie") is None


async def test_who_was_overtaken_shows_nothing_old() -> None:
    async with replicas(journal()) as (one, two):
        await one.become_active()
        await one.submit(asked("mkdirs", path="/a"))
        await two.become_active()
        await two.submit(asked("delete", path="/a"))
        with pytest.raises(ReplicaNotActiveError, match="cannot tell whether it is still active"):
            await one.look("/a")
        assert await two.look("/a") is None


async def test_who_was_overtaken_refuses_nothing_and_takes_nothing_for_done() -> None:
    """What it would say rests on a memory that is old."""
    async with replicas(journal()) as (one, two):
        await one.become_active()
        await one.submit(asked("mkdirs", path="/a"))
        await two.become_active()
        await two.submit(asked("delete", path="/a"))
        await two.submit(asked("mkdirs", path="/b"))
        with pytest.raises(ReplicaNotActiveError):
            await one.submit(asked("mkdirs", path="/a"))
    async with replicas(journal()) as (one, two):
        await one.become_active()
        await two.become_active()
        await two.submit(asked("mkdirs", path="/b"))
        with pytest.raises(ReplicaNotActiveError):
            await one.submit(asked("delete", path="/b"))


async def test_a_repeated_request_is_done_once_also_by_the_other_replica() -> None:
    async with replicas(journal()) as (one, two):
        request = asked("create", 7, b"c" * 16, path="/f")
        await one.become_active()
        first = await one.submit(request)
        assert await one.submit(request) == first
        await two.become_active()
        assert await two.submit(request) == first
        assert two.stats.repeated == 1
        with pytest.raises(InodeExistsError):
            await two.submit(asked("create", 8, b"c" * 16, path="/f"))
        assert two.namespace.txid == first


async def test_many_clients_at_once_are_answered_in_the_order_of_the_journal() -> None:
    uri = journal()
    async with replicas(uri, 1) as (one,):
        await one.become_active()
        answers = await asyncio.gather(
            *(one.submit(asked("create", n, b"c" * 16, path=f"/d{n % 5}/f{n}")) for n in range(40)),
            *(one.submit(asked("create", n, b"d" * 16, path=f"/d{n % 5}/f{n}")) for n in range(40)),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, int) for answer in answers) == 40
        assert sum(isinstance(answer, InodeExistsError) for answer in answers) == 40


async def test_what_it_writes_is_an_edits_file_of_hdfs() -> None:
    uri = journal()
    async with replicas(uri, 1) as (one,):
        await one.become_active()
        await one.submit(asked("create", 1, b"c" * 16, path="/größe/f"))
        await one.submit(asked("add_block", 2, b"c" * 16, path="/größe/f"))
        await one.submit(asked("close", 3, b"c" * 16, path="/größe/f", length=9))
        async with await open_reader(uri) as reader:
            ops = [op async for op in read_ops(reader, TxId(1))]
            [segment] = await reader.segments()
        assert segment.layout_version == -67
    file = encode_edits_header(-67) + b"".join(encode_op(op.opcode, op.txid, op.body) for op in ops)
    read = EditsReader()
    names = [type(decode_hdfs_op(op.opcode, op.body)).__name__ for op in [*read.feed(file), *read.finish()]]
    assert names == ["MkdirOp", "AddOp", "AllocateBlockIdOp", "SetGenstampV2Op", "AddBlockOp", "CloseOp"]


async def test_checkpoints_are_offered_by_the_standby_kept_by_the_active_and_bound_the_journal() -> None:
    uri = journal()
    async with replicas(uri) as (one, two):
        await one.become_active()
        n = 0

        async def is_purged() -> bool:
            nonlocal n
            await one.submit(asked("mkdirs", path=f"/d{n}"))
            n += 1
            return one.stats.purged >= 2 and one.stats.adopted >= 3

        await until(is_purged)
        assert two.stats.offered >= 3
        assert one.stats.offered == two.stats.adopted == 0
        await two.close()
        kept = []

        async def has_two_left() -> bool:
            nonlocal kept
            async with await open_snapshots(uri) as store:
                kept = [info.at for info in await store.list()]
            return len(kept) == 2

        await until(has_two_left)
        async with await open_reader(uri) as reader:
            first = (await reader.segments())[0].first
        assert 1 < first <= kept[0] + 1, "what the older checkpoint needs is there"
    async with replicas(uri, 1) as (three,):
        await three.become_active()
        assert three.stats.restored_at >= kept[0]
        assert len(three.namespace.root.children) == n


async def test_a_standby_whose_edits_were_discarded_begins_anew() -> None:
    """It went on with the next id, behind edits that the journal does not have any more."""
    uri = journal()
    async with replicas(uri) as (one, two):
        for paths in (("/a",), ("/b", "/c")):
            await one.become_active()
            for path in paths:
                await one.submit(asked("mkdirs", path=path))
            await one.become_standby()
        await until(lambda: two.namespace.txid == 3)
        async with await open_writer(uri, owner="a person") as writer:
            await capability(writer, Discard).discard_from(TxId(2))  # type: ignore[type-abstract]
        await one.become_active()
        for path in ("/x", "/y", "/z"):
            await one.submit(asked("mkdirs", path=path))
        await one.become_standby()
        await until(lambda: two.namespace.txid == 4)
        assert sorted(two.namespace.root.children) == ["a", "x", "y", "z"]
        await two.become_active()
        assert sorted(two.namespace.root.children) == ["a", "x", "y", "z"]


async def test_a_checkpoint_that_is_gone_falls_back_to_the_one_before() -> None:
    uri = journal()
    async with replicas(uri) as (one, two):
        await one.become_active()

        async def has_two() -> bool:
            await one.submit(asked("mkdirs", path=f"/d{one.namespace.txid}"))
            async with await open_snapshots(uri) as store:
                return len(await store.list()) == 2

        await until(has_two)
        await two.close()
        count = len(one.namespace.root.children)
        await one.become_standby()
    async with await open_writer(uri, owner="a person") as writer, await open_snapshots(uri) as store:
        older, newer = [info.at for info in await store.list()]
        await writer.delete_snapshot(newer)
    async with replicas(uri, 1) as (three,):
        await three.become_active()
        assert three.stats.restored_at == older
        assert len(three.namespace.root.children) == count


async def test_a_standby_for_which_edits_were_purged_too_early_begins_with_a_newer_checkpoint() -> None:
    uri = journal()
    async with replicas(uri) as (one, two):
        await one.become_active()
        await one.submit(asked("mkdirs", path="/d0"))
        await until(lambda: two.namespace.txid == 1)
        follow = two._apply_edit

        def fail(edit: Op) -> None:
            raise JournalUnavailableError("for a test")

        two._apply_edit = fail  # type: ignore[method-assign]
        async with replicas(uri, 1) as (three,):
            numbers = itertools.count(1)

            async def is_purged_after_another_edit() -> bool:
                """A segment goes only when it ends before a checkpoint, and it ends only when edits follow."""
                await one.submit(asked("mkdirs", path=f"/d{next(numbers)}"))
                await until(lambda: three.namespace.txid == one.namespace.txid)
                async with await open_reader(uri) as reader:
                    return (await reader.segments())[0].first > 3

            await until(is_purged_after_another_edit)
        two._apply_edit = follow  # type: ignore[method-assign]
        await until(lambda: two.namespace.txid == one.namespace.txid)
        assert two.stats.restored_at > 2
        assert image(one) == image(two)


async def test_both_may_be_standby_and_each_may_be_active_again_and_again() -> None:
    async with replicas(journal()) as (one, two):
        for n, (active, other) in enumerate([(one, two), (two, one)] * 3):
            await active.become_active()
            await active.become_active()
            await active.submit(asked("mkdirs", path=f"/d{n}"))
            await active.become_standby()
            await until(lambda other=other, n=n: other.namespace.txid == n + 1)  # type: ignore[misc]
        await until(lambda: one.namespace.txid == two.namespace.txid == 6)
        assert image(one) == image(two)


async def test_an_edit_that_does_not_fit_stops_a_standby() -> None:
    uri = journal()
    async with replicas(uri) as (one, two):
        await one.become_active()
        await one.submit(asked("mkdirs", path="/a"))
        await until(lambda: two.namespace.txid == 1)
        two.namespace.root.children.clear()
        await one.submit(asked("mkdirs", path="/a/b"))
        await until(lambda: two.role is NameNodeRole.FAILED)
        assert "does not fit" in two.stats.last_error
