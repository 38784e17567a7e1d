"""One question, and what its reply says."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from bookkeeper import codec
from bookkeeper.client.bookie_request import entry_of, failure_of, request_reply, send_request
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BookieUnavailableError,
    BookKeeperError,
    ClientClosedError,
    DigestMismatchError,
    MalformedFrameError,
    NoSuchEntryError,
)
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, DigestType
from bookkeeper.wire import AddReply, BareReply, BatchRead, BatchReply, ForceReply, ReadEntry, ReadReply, Reply, Status
from tests.bookkeeper.client.scripted import ScriptedCluster, written

DIGEST = DigestScheme(DigestType.CRC32C, b"")
L7, E3 = LedgerId(7), EntryId(3)
PACKET = DIGEST.seal(7, 3, 2, 10, b"payload")


def test_an_error_that_was_raised_is_freed_with_its_last_reference() -> None:
    gc.disable()
    try:
        gone = None
        try:
            entry_of(ReadReply(Status.NO_ENTRY, L7, E3), DIGEST, L7, 3, "x")
        except NoSuchEntryError as error:
            gone = weakref.ref(error)
        assert gone is not None and gone() is None
    finally:
        gc.enable()


@pytest.mark.rule("L5")
def test_an_entry_is_handed_out_only_if_digest_and_ids_are_right() -> None:
    assert entry_of(ReadReply(Status.OK, L7, E3, PACKET), DIGEST, L7, 3, "x").payload == b"payload"
    assert entry_of(ReadReply(Status.OK, L7, E3, PACKET), DIGEST, L7, None, "x").entry_id == 3
    with pytest.raises(DigestMismatchError):
        entry_of(ReadReply(Status.OK, L7, E3, PACKET), DIGEST, L7, 4, "x")
    with pytest.raises(DigestMismatchError):
        entry_of(ReadReply(Status.OK, L7, E3, PACKET[:-1] + b"?"), DIGEST, L7, 3, "x")
    for reply in (ReadReply(Status.OK, L7, E3, None), AddReply(Status.OK, L7, E3)):
        with pytest.raises(MalformedFrameError, match="the bookie answered OK, but sent no entry"):
            entry_of(reply, DIGEST, L7, 3, "x")


def test_a_refusal_is_an_error_that_says_what_was_asked() -> None:
    error = failure_of(ReadReply(Status.NO_ENTRY, L7, E3), "entry 3 on b1")
    assert isinstance(error, NoSuchEntryError) and str(error) == "entry 3 on b1: the bookie does not have the entry"
    assert failure_of(ReadReply(Status.OK, L7, E3), "x") is None
    lost = BookieUnavailableError("lost")
    assert failure_of(lost, "x") is lost


@pytest.mark.rule("Q2", "W11")
def test_a_success_without_its_message_promises_nothing() -> None:
    assert failure_of(ForceReply(Status.OK, L7), "force") is None
    assert isinstance(failure_of(BareReply(Status.OK), "force"), MalformedFrameError)


def test_every_question_is_answered_once_also_by_a_bookie_that_is_gone() -> None:
    async def story(cluster: ScriptedCluster) -> None:

        async with cluster.connect() as bk:
            heard: list[Reply | BookKeeperError] = []
            tasks = Tasks("questions")
            cluster.world.node("b1").crash(power=False)
            for bookie in ("b1", "b2", "b2"):
                send_request(bk.services, tasks, BookieId(bookie), ReadEntry(L7, E3), heard.append)
            assert not heard  # never inside the call
            await asyncio.sleep(3)
            assert sorted(type(reply).__name__ for reply in heard) == [
                "BookieUnavailableError",
                "ReadReply",
                "ReadReply",
            ]

    ScriptedCluster().run(story)


@pytest.mark.rule("P4")
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_question_whose_asker_is_closed_before_there_is_a_connection_is_answered(turns: int) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            heard: list[Reply | BookKeeperError] = []
            tasks = Tasks("questions")
            send_request(bk.services, tasks, BookieId("b1"), ReadEntry(L7, E3), heard.append)
            for _ in range(turns):
                await asyncio.sleep(0)
            await tasks.close()
            await asyncio.sleep(1)
            assert [type(reply) for reply in heard] == [ClientClosedError]

    ScriptedCluster().run(story)


@pytest.mark.rule("P7")
def test_a_question_that_meets_what_nobody_expected_is_answered_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:

            async def broken(bookie: BookieId, use: object) -> None:
                raise LookupError("a bug of ours")

            monkeypatch.setattr(bk.services.pool, "get", broken)
            heard: list[Reply | BookKeeperError] = []
            send_request(bk.services, Tasks("questions"), BookieId("b1"), ReadEntry(L7, E3), heard.append)
            await asyncio.sleep(1)
            assert [type(reply) for reply in heard] == [BookieUnavailableError]
            assert "a bug of ours" in caplog.text

    ScriptedCluster().run(story)


@pytest.mark.rule("A1", "L5")
def test_a_batch_that_is_awaited_later_is_still_what_the_bookie_sent() -> None:
    """The reply's body was a view of the receive buffer: what a repair read back were later bytes, it took its good
    copy for a damaged one, and sent it again and again."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 40, 10)
            tasks = Tasks("questions")

            def batch(first: int) -> asyncio.Future[Reply | BookKeeperError]:
                request = BatchRead(ledger_id, EntryId(first), 0, 10, 1 << 20)
                return request_reply(bk.services, tasks, BookieId("b1"), request, use=ConnectionPurpose.BATCH)

            waiting = batch(0)
            await asyncio.sleep(1)
            assert waiting.done()
            await batch(20)  # its bytes come into the same buffer
            reply = await waiting
            assert isinstance(reply, BatchReply)
            found = codec.split_entries(reply.body, 0, len(reply.body), ledger_id, 0, DigestType.CRC32C, b"")
            assert found.payloads == [b"%d" % i * 10 for i in range(10)]
            await tasks.close()

    ScriptedCluster().run(story)
