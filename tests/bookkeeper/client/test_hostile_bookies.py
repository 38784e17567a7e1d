"""One bookie of three lies, in every way that its protocol allows: readers, tails and recoveries get the right bytes from
the other two, and of what a digest shows nothing is believed without it.

It is always the bookie that is asked first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bookkeeper import wire
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.errors import BookieFailedError, BookieUnavailableError, RequestTimedOutError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import HEADER
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import CONFIG, ScriptedBookie, ScriptedCluster

Reply = Callable[[wire.Reply], None]
Truth = Callable[[wire.Request, Reply], None]
Lie = Callable[["LyingBookie", wire.Request, Reply, Truth], bool]
"""Answers a request, or returns False if the truth will do."""

FAR = 1 << 60
PASSWORD = b"secret"


class LyingBookie(ScriptedBookie):
    lie: Lie | None = None

    def handle(self, request: wire.Request, reply: Reply) -> None:
        if self.lie is None or not self.lie(request, reply, super().handle):  # type: ignore[call-arg,arg-type]
            super().handle(request, reply)

    def send(self, data: bytes) -> None:
        for connection in self.connections:
            connection.write(data)


def is_read(request: wire.Request) -> bool:
    return isinstance(request, wire.ReadEntry | wire.BatchRead | wire.ReadLac)


def is_poll(request: wire.Request) -> bool:
    return isinstance(request, wire.ReadEntry) and request.long_poll


def with_status(status: Status) -> Lie:
    def lie(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
        if is_read(request):
            reply(wire.failure(request, status))
        return is_read(request)

    return lie


def refuses_all(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    reply(wire.failure(request, Status.UNAUTHORIZED))
    return True


def succeeds_with_nothing(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    match request:
        case wire.ReadEntry():
            reply(wire.ReadReply(Status.OK, request.ledger_id, request.entry_id))
        case wire.BatchRead():
            reply(wire.BatchReply(Status.OK, request.ledger_id, request.first_entry, request.request_id, b""))
        case wire.ReadLac():
            reply(wire.LacReply(Status.OK, request.ledger_id, None, None))
        case _:
            return False
    return True


def repeats_the_first_entry(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    """The entry is good; it is another one."""
    entry = bookie.entries[LEDGER][0]
    match request:
        case wire.ReadEntry():
            entry_id = EntryId(0) if request.long_poll else request.entry_id
            reply(wire.ReadReply(Status.OK, request.ledger_id, entry_id, entry, 0))
        case wire.BatchRead():
            body = 2 * (len(entry).to_bytes(4, "big") + entry)
            reply(wire.BatchReply(Status.OK, request.ledger_id, request.first_entry, request.request_id, body))
        case wire.ReadLac():
            reply(wire.LacReply(Status.OK, request.ledger_id, None, entry))
        case _:
            return False
    return True


def sends_what_comes_behind(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    """More than was asked for, or out of order."""
    if not isinstance(request, wire.BatchRead):
        return False
    order = [*range(request.first_entry, 20)] if request.first_entry < 5 else [19, *range(18, 5, -1)]
    stored = bookie.entries[LEDGER]
    body = b"".join(len(stored[i]).to_bytes(4, "big") + stored[i] for i in order)
    reply(wire.BatchReply(Status.OK, request.ledger_id, request.first_entry, request.request_id, body))
    return True


def breaks_off_in_a_batch(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    if not isinstance(request, wire.BatchRead):
        return False
    entry = bookie.entries[LEDGER][request.first_entry]
    body = len(entry).to_bytes(4, "big") + entry + (2**31 - 1).to_bytes(4, "big") + entry
    reply(wire.BatchReply(Status.OK, request.ledger_id, request.first_entry, request.request_id, body))
    return True


def answers_twice_and_unasked(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    entry = bookie.entries[LEDGER][0]
    for txn in (0, 1, 1 << 39, 5 << 40):
        header = wire.RequestHeader(wire.Dialect.V3, wire.Operation.READ, txn)
        bookie.send(wire.encode_reply(header, wire.ReadReply(Status.OK, LEDGER, EntryId(0), entry, FAR)))

    def twice(answer: wire.Reply) -> None:
        reply(answer)
        reply(answer)

    truth(request, twice)
    return True


def claims_the_far_end(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    if is_poll(request):
        reply(wire.ReadReply(Status.OK, LEDGER, EntryId(-1), None, FAR))
        return True
    if not isinstance(request, wire.ReadEntry):
        return False
    truth(request, lambda answer: reply(replace(answer, max_lac=FAR) if isinstance(answer, wire.ReadReply) else answer))
    return True


def polls_bring_an_entry_and_no_news(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    if not isinstance(request, wire.ReadEntry) or request.previous_lac is None:
        return False
    entry_id = EntryId(request.previous_lac + 1)
    entry = bookie.entries[LEDGER].get(entry_id, b"no entry, and no digest")
    reply(wire.ReadReply(Status.OK, LEDGER, entry_id, entry, request.previous_lac))
    return True


def says_nothing(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    return True


def begins_a_frame_of_two_gigabytes(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    bookie.send((2**31 - 1).to_bytes(4, "big") + b"x" * 100)
    return True


def never_ends_its_frame(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    bookie.send((1 << 20).to_bytes(4, "big") + b"\x00")
    return True


def drips(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    bookie.send((1 << 20).to_bytes(4, "big"))
    for second in range(60):
        asyncio.get_running_loop().call_later(second, bookie.send, b"\x00")
    return True


def sends_garbage(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    bookie.send(b"\x00\x00\x00\x08garbage!")
    return True


def challenges(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
    """Authentication, to a client that asked for none."""
    for op, answer in (
        (wire.Operation.AUTH, wire.AuthReply(Status.OK, "plugin", b"token")),
        (wire.Operation.START_TLS, wire.StartTlsReply(Status.OK)),
    ):
        bookie.send(wire.encode_reply(wire.RequestHeader(wire.Dialect.V3, op, 1), answer))
    return False


LEDGER = LedgerId(7)
LIES: Sequence[Lie] = (
    with_status(Status.NO_LEDGER),
    with_status(Status.NO_ENTRY),
    with_status(Status.UNAUTHORIZED),
    with_status(Status.FENCED),
    with_status(Status.READ_ONLY),
    with_status(Status.BAD_VERSION),
    with_status(Status.TOO_MANY_REQUESTS),
    refuses_all,
    succeeds_with_nothing,
    repeats_the_first_entry,
    sends_what_comes_behind,
    breaks_off_in_a_batch,
    answers_twice_and_unasked,
    claims_the_far_end,
    polls_bring_an_entry_and_no_news,
    says_nothing,
    begins_a_frame_of_two_gigabytes,
    never_ends_its_frame,
    drips,
    sends_garbage,
    challenges,
)
NAMES = [f"{lie.__name__}-{i}" if lie.__name__ == "lie" else lie.__name__ for i, lie in enumerate(LIES)]


def cluster_of_liars(bookies: int = 3) -> ScriptedCluster:
    cluster = ScriptedCluster()
    cluster.bookies = [LyingBookie(f"b{i + 1}") for i in range(bookies)]
    return cluster


def begin(cluster: ScriptedCluster, first: BookieId, lie: Lie) -> LyingBookie:
    """The bookie lies from now on."""
    liar = cluster[first]
    assert isinstance(liar, LyingBookie)
    liar.lie = lie.__get__(liar)  # type: ignore[attr-defined]
    return liar


def polls(bookie: ScriptedBookie) -> int:
    return sum(map(is_poll, bookie.requests))


async def tail_of(reader: ReadHandle) -> list[bytes]:
    return [entry.payload async for entry in reader.tail()]


@pytest.mark.rule("L1", "L3", "L5", "L9", "V7")
@pytest.mark.parametrize("digest", ["crc32c", "hmac"])
@pytest.mark.parametrize("lie", LIES, ids=NAMES)
def test_one_liar_of_three_keeps_nobody_from_the_right_bytes(lie: Lie, digest: str) -> None:
    expected = [b"%d" % i for i in range(20)]

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other, cluster.connect() as third:
            shape = {"password": PASSWORD, "digest": digest}
            ledger = await bk.create_ledger(ledger_id=LEDGER, **shape)  # type: ignore[arg-type]
            await ledger.append_many(expected[:18])
            await asyncio.sleep(1)
            liar = begin(cluster, ledger.metadata.last_fragment.ensemble[0], lie)
            async with await other.open_ledger(LEDGER, recovery=False, password=PASSWORD) as reader:
                tailing = asyncio.ensure_future(tail_of(reader))
                for payload in expected[18:]:
                    await asyncio.sleep(4)
                    await ledger.append(payload)
                await asyncio.sleep(4)
                assert polls(liar) < 60, "it does not keep its readers busy"
                async with await third.open_ledger(LEDGER, password=PASSWORD) as recovered:
                    assert recovered.last_add_confirmed == 19
                    assert [e.payload async for e in recovered.read(0, 19)] == expected
                    assert [await recovered.read_entry(i) for i in range(0, 20, 7)] == expected[::7]
                assert await asyncio.wait_for(tailing, 60) == expected
            await ledger.abandon()

    cluster_of_liars().run(story)
