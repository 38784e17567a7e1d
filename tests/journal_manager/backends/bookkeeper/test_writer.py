"""The chain of ledgers through crashes, failures, lost replies and races at every step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bookkeeper.errors import BookieUnavailableError, MetadataUnavailableError
from bookkeeper.meta.store import Version
from bookkeeper.meta.stores.memory import Fate
from journal_manager import (
    Discard,
    EditLog,
    EditLogConfig,
    JournalCorruptionError,
    JournalError,
    JournalFencedError,
    JournalUnavailableError,
    JournalWriter,
    NamespaceInfo,
    TxId,
    Upgrade,
    UpgradeError,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from journal_manager.journals.chain import Chain
from tests.contracts.journal_backend import batch, body, ends, txids, write_segment
from tests.contracts.journal_story import Story
from tests.journal_manager.backends.bookkeeper.fake import Client, Cluster, Died, LostReplies
from tests.spark_wal.webhdfs.virtual import in_virtual_time


async def writer_on(cluster: Cluster, owner: str = "a") -> JournalWriter:
    return await open_writer("bk:edits", owner=owner, client=cluster.client())


async def chain_of(client: Client) -> Chain:
    return (await JournalNode(client.metadata_store, "edits").read())[0]  # type: ignore[arg-type]


async def orphans(cluster: Cluster) -> set[int]:
    """Ledgers that the chain does not name."""
    chain = await chain_of(cluster.client())
    return set(cluster.ledgers) - {int(segment.location) for segment in chain.segments}


async def check_ledgers(cluster: Cluster) -> None:
    """C1, C3: ledgers outside the chain are empty or purged; of the chain's at most the last is not closed."""
    chain = await chain_of(cluster.client())
    located = [cluster.ledgers[int(segment.location)] for segment in chain.segments]
    assert all(ledger.closed for ledger in located[:-1])
    named = {ledger.id for ledger in located}
    for ledger in cluster.ledgers.values():
        if ledger.id not in named and ledger.entries:
            assert ledger.closed, "it was in the chain once, and purged"
        assert ledger.tags["journal"] == b"edits"


async def cut_off(cluster: Cluster, life: Callable[[], Awaitable[None]], steps: int) -> bool:
    cluster.die_after(steps)
    try:
        await life()
    except Died:
        return True
    finally:
        cluster.die_after(None)
    return False


@pytest.mark.rule("C1", "C2", "C3", "C4", "C6", "C7", "C8")
async def test_any_crash_of_a_writer_and_of_the_next_ones_recovery() -> None:
    images = 0
    for at in range(400):
        cluster = Cluster()
        story = Story(lambda cluster=cluster: writer_on(cluster))  # type: ignore[misc]
        if not await cut_off(cluster, story.live, at):
            break
        for again in range(0, 40, 7):
            images += 1
            if not await cut_off(cluster, story.live, again + at % 7):
                break
        await story.check()
        await check_ledgers(cluster)
    else:
        pytest.fail("the story never came to its end")
    assert images > 250


@pytest.mark.rule("C4", "C7")
@pytest.mark.parametrize(
    "step",
    ["create_ledger", "open_ledger", "append", "append done", "close", "recovered", "read", "get", "set", "sync"],
)
async def test_any_failing_step_leaves_a_journal_that_opens_once_the_fault_is_gone(step: str) -> None:
    error = MetadataUnavailableError("away") if step in ("get", "set", "sync") else BookieUnavailableError("away")
    for after in range(60):
        cluster = Cluster()
        story = Story(lambda cluster=cluster: writer_on(cluster))  # type: ignore[misc]
        seen = 0

        def count(name: str, cluster: Cluster = cluster, after: int = after) -> None:
            nonlocal seen
            seen += name == step
            if name == step and seen == after + 1:
                raise error

        cluster.step = count  # type: ignore[method-assign]
        try:
            await story.live()
            await story.check()
        except JournalUnavailableError:
            await story.check()
            await check_ledgers(cluster)
        if seen <= after:
            break
    else:
        pytest.fail("the fault never came to an end")


@pytest.mark.rule("C1", "C3", "C4", "C7")
@pytest.mark.parametrize(
    "step",
    [
        "create_ledger",
        "create_ledger done",
        "close",
        "get",
        "set",
        "set done",
        "sync",
        "delete_ledger",
        "set done, then all",
    ],
)
@in_virtual_time
async def test_a_store_that_is_away_for_five_seconds_at_any_step_ends_no_writer(step: str) -> None:
    reached, (step, *rest) = 0, step.split(", ")
    for after in range(60):
        cluster = Cluster()
        log = await EditLog.open("bk:edits", client=cluster.client(), config=EditLogConfig(segment_edits=2))
        seen, back_at = 0, float("inf")

        def away(name: str, cluster: Cluster = cluster, after: int = after) -> None:
            nonlocal seen, back_at
            now = asyncio.get_running_loop().time()
            if name == step:
                seen += 1
                if seen == after + 1:
                    back_at = now + 5
            if seen > after and now < back_at and (name == step or rest):
                raise MetadataUnavailableError("away")

        cluster.step = away  # type: ignore[method-assign]
        for txid in range(1, 6):
            assert await log.log(body(txid), opcode=txid) == txid
        await log.roll()
        await log.purge(TxId(3))
        await log.close()
        cluster.step = lambda name: None  # type: ignore[method-assign]
        async with await open_reader("bk:edits", client=cluster.client()) as reader:
            assert await txids(reader, 3) == [3, 4, 5]
        await check_ledgers(cluster)
        if step in ("set", "set done") and not rest:
            assert await orphans(cluster) == set()
        reached += seen > after
        if seen <= after:
            break
    else:
        pytest.fail("the fault never came to an end")
    assert reached > 0


@pytest.mark.rule("C5", "C7", "M8")
async def test_a_lost_reply_of_the_store_changes_nothing() -> None:
    for n in range(12):
        cluster = Cluster()
        cluster.metadata.interference = LostReplies(n)
        story = Story(lambda cluster=cluster: writer_on(cluster))  # type: ignore[misc]
        await story.live()
        await story.check()
        assert await orphans(cluster) == set()


@pytest.mark.rule("C5", "C9")
async def test_a_ledger_that_lost_the_race_for_the_chain_is_deleted() -> None:
    cluster = Cluster()
    old = await writer_on(cluster, "old")
    await write_segment(old, 1, 2)
    await writer_on(cluster, "new")
    with pytest.raises(JournalFencedError):
        await old.start_segment(TxId(3), 1)
    assert await orphans(cluster) == set()
    assert "create_ledger" in cluster.steps, "it was made and deleted again"


@pytest.mark.rule("C1", "M8")
async def test_a_ledger_that_is_in_the_chain_by_a_step_without_an_answer_is_the_next_owners() -> None:
    class Overtaken:
        """The step is done, no answer comes, and another owner claims the journal."""

        done = False

        def fate(self, session: int, kind: str, path: str) -> Fate:
            if kind == "set":
                self.done = True
                return Fate(reply_lost=True)
            if self.done:
                cluster.metadata.interference = None
                node = cluster.metadata.dump()[path]
                claimed = Chain.decode(node.value).claim("new", "another nonce").encode()
                cluster.metadata.write(0, lambda transaction: transaction.set(path, claimed, Version(node.version)))
            return Fate()

    cluster = Cluster()
    old = await writer_on(cluster, "old")
    cluster.metadata.interference = Overtaken()
    with pytest.raises(JournalFencedError):
        await old.start_segment(TxId(1), 1)
    chain = await chain_of(cluster.client())
    assert chain.open_segment is not None and int(chain.open_segment.location) in cluster.ledgers


@pytest.mark.rule("C6")
async def test_purged_ledgers_are_deleted_and_a_failure_to_do_so_is_none_of_the_writers() -> None:
    cluster = Cluster()
    writer = await writer_on(cluster)
    for first in (1, 2, 3):
        await write_segment(writer, first, first)
    cluster.fail_at = ("delete_ledger", BookieUnavailableError("away"))
    assert ends(await writer.purge(TxId(3))) == [(1, 1), (2, 2)]
    assert await orphans(cluster) == {1}


@pytest.mark.rule("C8")
async def test_a_ledger_that_someone_deleted_is_reported_as_lost() -> None:
    cluster = Cluster()
    writer = await writer_on(cluster)
    segment = await writer.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    cluster.ledgers.clear()
    with pytest.raises(JournalCorruptionError) as caught:
        await writer_on(cluster)
    assert caught.value.first_missing == 1


async def test_a_ledger_closed_by_an_operator_ends_the_segment_and_not_the_epoch() -> None:
    cluster = Cluster()
    log = await EditLog.open("bk:edits", client=cluster.client())
    await log.log(b"1")
    await cluster.client().open_ledger(1, None)
    with pytest.raises(JournalError) as caught:
        await log.log(b"2")
    assert not isinstance(caught.value, JournalFencedError)
    await log.abort()
    again = await EditLog.open("bk:edits", client=cluster.client())
    assert [op.body async for op in again.read(TxId(1))] == [b"1"]
    await again.abort()


async def test_a_writer_reads_its_own_open_segment_although_readers_lag() -> None:
    cluster = Cluster()
    cluster.lagging = True
    writer = await writer_on(cluster)
    segment = await writer.start_segment(TxId(1), 1)
    for txid in range(1, 6):
        await segment.append(batch(txid))
    assert await txids(writer, 1, 5) == [1, 2, 3, 4, 5]
    assert await txids(writer, 4, 5) == [4, 5]
    reader = await open_reader("bk:edits", client=cluster.client())
    assert await txids(reader) == [1, 2, 3, 4]


@pytest.mark.rule("C5")
async def test_claims_that_race_are_told_apart_although_owners_share_a_name() -> None:
    cluster = Cluster()
    writers = await asyncio.gather(*(contend(cluster) for _ in range(6)))
    tokens = [writer.token.epoch for writer in writers if writer is not None]
    assert len(set(tokens)) == len(tokens) and max(tokens) == 6
    owners = 0
    for writer in writers:
        try:
            if writer is not None:
                await writer.ensure_owner()
                owners += 1
        except JournalFencedError:
            pass
    assert owners == 1


async def contend(cluster: Cluster) -> JournalWriter | None:
    try:
        return await writer_on(cluster)
    except JournalFencedError:
        return None


@pytest.mark.rule("J5", "J8")
@pytest.mark.parametrize("step", ["roll_back", "discard"])
async def test_a_crash_while_edits_are_discarded_is_mended_by_doing_it_again(step: str) -> None:
    async def back(cluster: Cluster) -> None:
        writer = await writer_on(cluster)
        assert isinstance(writer, Upgrade) and isinstance(writer, Discard)
        await (writer.roll_back() if step == "roll_back" else writer.discard_from(4))

    for at in range(200):
        cluster = Cluster()
        writer = await writer_on(cluster)
        assert isinstance(writer, Upgrade)
        await write_segment(writer, 1, 3)
        await writer.save_snapshot(3, [b"before"])
        if step == "roll_back":
            await writer.begin_upgrade(NamespaceInfo(layout_version=2))
        for first in (4, 5, 6):
            await write_segment(writer, first, first)
        await writer.save_snapshot(6, [b"since"])
        died = await cut_off(cluster, lambda cluster=cluster: back(cluster), at)  # type: ignore[misc]
        try:
            await back(cluster)
        except UpgradeError:
            pass  # it had come to its end
        writer = await writer_on(cluster)
        assert await txids(writer) == [1, 2, 3]
        store = await open_snapshots("bk:edits", client=cluster.client())
        assert [info.at for info in await store.list()] == [3]
        await write_segment(writer, 4, 4)
        if not died:
            assert at > 10
            return
    pytest.fail("it never came to its end")
