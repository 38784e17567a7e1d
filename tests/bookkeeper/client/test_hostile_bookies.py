"""One bookie of three lies, in every way that its protocol allows: readers, tails and recoveries get the right bytes
from the other two, and what a digest can show is not believed without it.

It is always the bookie that is asked first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bookkeeper import wire
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.errors import BookieFailedError, BookieUnavailableError, RequestTimedOutError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import HEADER
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedBookie, ScriptedCluster

Reply = Callable[[wire.Reply], None]
Truth = Callable[[wire.Request, Reply], None]
Lie = Callable[["LyingBookie", wire.Request, Reply, Truth], bool]
"""Answers a request for the bookie, or returns False if the truth will do."""

FAR = 1 << 40
PASSWORD = b"secret"


class LyingBookie(ScriptedBookie):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.lies: list[Lie] = []
        """At most one."""

    def handle(self, request: wire.Request, reply: Reply) -> None:
        if not any(lie(self, request, reply, super(LyingBookie, self).handle) for lie in self.lies):
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
    liar.lies.append(lie)
    return liar


def polls(bookie: ScriptedBookie) -> int:
    return sum(map(is_poll, bookie.requests))


async def tail_of(reader: ReadHandle) -> list[bytes]:
    return [entry.payload async for entry in reader.tail()]


@pytest.mark.rule("L1", "L3", "L5", "L9", "V7", "X40")
@pytest.mark.parametrize(
    ("lie", "digest"),
    [*((lie, "crc32c") for lie in LIES), *((lie, "hmac") for lie in (claims_the_far_end, repeats_the_first_entry))],
    ids=[*NAMES, "claims_the_far_end with a key", "repeats_the_first_entry with a key"],
)
def test_one_liar_of_three_keeps_nobody_from_the_right_bytes(lie: Lie, digest: str) -> None:
    expected = [b"%d" % i for i in range(20)]

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other, cluster.connect() as third:
            ledger = await bk.create_ledger(ledger_id=LEDGER, password=PASSWORD, digest=digest)
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


def sends_what_others_do_not_have(claims: bool) -> Lie:
    """Polls bring an entry that its writer has made, and that is not confirmed."""

    def lie(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
        if not isinstance(request, wire.ReadEntry) or request.previous_lac is None:
            return False
        entry_id = EntryId(request.previous_lac + 1)
        if (entry := bookie.entries[LEDGER].get(entry_id)) is not None:
            reply(wire.ReadReply(Status.OK, LEDGER, entry_id, entry, entry_id if claims else request.previous_lac))
        return entry is not None

    return lie


@pytest.mark.rule("L3", "L9")
@pytest.mark.parametrize(("claims", "digest"), [(True, "hmac"), (False, "hmac"), (False, "crc32c")])
def test_an_entry_that_is_not_confirmed_is_not_read_because_a_bookie_sends_it(claims: bool, digest: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(ledger_id=LEDGER, password=PASSWORD, digest=digest)
            await ledger.append(b"0")
            await asyncio.sleep(1)
            first, *others = ledger.metadata.last_fragment.ensemble
            liar = begin(cluster, first, sends_what_others_do_not_have(claims))
            async with await other.open_ledger(LEDGER, recovery=False, password=PASSWORD) as reader:
                tailing = asyncio.ensure_future(tail_of(reader))
                await asyncio.sleep(1)
                for bookie in others:
                    cluster[bookie].refuse_adds = Status.TOO_MANY_REQUESTS
                appending = asyncio.ensure_future(ledger.append(b"1"))
                before = polls(liar)
                await asyncio.sleep(3.5)
                assert 1 in liar.entries[LEDGER] and not appending.done()
                assert 0 < polls(liar) - before < 10, "it was asked, and does not keep its reader busy"
                assert reader.last_add_confirmed == 0
                for bookie in others:
                    cluster[bookie].refuse_adds = None
                assert await appending == 1
                await asyncio.sleep(3)
                assert reader.last_add_confirmed == 1, "what an entry shows is believed"
                await ledger.close()
                assert await asyncio.wait_for(tailing, 20) == [b"0", b"1"]

    cluster_of_liars().run(story)


@pytest.mark.rule("L3", "L7")
@pytest.mark.parametrize("silent", [False, True], ids=["it answers reads", "it answers no read"])
def test_hearsay_that_proves_wrong_is_taken_back_and_the_bookie_named(silent: bool) -> None:
    def lie(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
        if is_poll(request):
            return claims_the_far_end(bookie, request, reply, truth)
        return silent and isinstance(request, wire.ReadEntry) and request.entry_id > 4

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(ledger_id=LEDGER)
            async with await other.open_ledger(LEDGER, recovery=False) as reader:
                first = ledger.metadata.last_fragment.ensemble[0]
                begin(cluster, first, lie)
                for i in range(5):
                    await ledger.append(b"%d" % i)
                assert await reader.wait_last_add_confirmed(-1, timeout_ms=1_000) == FAR
                assert [await reader.read_entry(i) for i in range(5)] == [b"%d" % i for i in range(5)]
                with pytest.raises(BookieFailedError, match=f"entry 5 of ledger 7 is not there: {first} said that all"):
                    await reader.read_entry(5)
                confirmed = reader.last_add_confirmed
                assert confirmed == HEADER.unpack_from(cluster[first].entries[LEDGER][4])[2], "entries have shown that"
                assert await reader.wait_last_add_confirmed(4, timeout_ms=3_000) <= 4, "its word counts no more"
                await ledger.append(b"5")
                assert await reader.wait_last_add_confirmed(4, timeout_ms=30_000) == 5
                assert await reader.read_entry(5) == b"5"
                await ledger.close()

    cluster_of_liars().run(story)


@pytest.mark.rule("L3")
@pytest.mark.parametrize("unconfirmed", [False, True], ids=["read_entry", "read_unconfirmed"])
@pytest.mark.parametrize("digest", ["crc32c", "hmac"])
def test_what_a_reply_says_beside_its_entry_is_hearsay(digest: str, unconfirmed: bool) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(ledger_id=LEDGER, password=PASSWORD, digest=digest)
            await ledger.append(b"0")
            await asyncio.sleep(1)
            async with await other.open_ledger(LEDGER, recovery=False, password=PASSWORD) as reader:
                assert [await reader.read_entry(0) for _ in range(3)] == [b"0"] * 3, "with connections to all"
                for bookie in ledger.metadata.last_fragment.ensemble:
                    begin(cluster, bookie, claims_the_far_end)
                assert await (reader.read_unconfirmed(0) if unconfirmed else reader.read_entry(0)) == b"0"
                assert reader.last_add_confirmed == (FAR if digest == "crc32c" else 0)
                await ledger.close()
                await reader.read_last_add_confirmed()
                assert reader.closed and reader.last_add_confirmed == 0

    cluster_of_liars().run(story)


@pytest.mark.rule("L3")
def test_what_another_reader_took_for_confirmed_is_hearsay_too() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(ledger_id=LEDGER)
            await ledger.append(b"0")
            await asyncio.sleep(1)
            async with await other.open_ledger(LEDGER, recovery=False) as reader:
                known = replace(reader.known, last=EntryId(9))
            async with await other.open_known(known) as reader:
                with pytest.raises(BookieFailedError, match="entry 5 of ledger 7 is not there, and no entry shows"):
                    await reader.read_entry(5)
            await ledger.close()

    cluster_of_liars().run(story)


@pytest.mark.rule("L9")
def test_a_bookie_that_does_not_show_what_it_claims_delays_the_others_little() -> None:
    def lie(bookie: LyingBookie, request: wire.Request, reply: Reply, truth: Truth) -> bool:
        return isinstance(request, wire.ReadLac) or claims_the_far_end(bookie, request, reply, truth)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(ledger_id=LEDGER, password=PASSWORD, tamper_evident=True)
            await ledger.append(b"0")
            await asyncio.sleep(1)
            begin(cluster, ledger.metadata.last_fragment.ensemble[0], lie)
            async with await other.open_ledger(LEDGER, recovery=False, password=PASSWORD) as reader:
                waiting = asyncio.ensure_future(reader.wait_last_add_confirmed(0, timeout_ms=60_000))
                await asyncio.sleep(5)
                began = asyncio.get_running_loop().time()
                await ledger.append(b"1")
                assert await waiting == 1
                assert asyncio.get_running_loop().time() - began < 3
                await ledger.close()

    cluster_of_liars().run(story)


@pytest.mark.rule("V7")
@pytest.mark.parametrize("lie", [says_nothing, never_ends_its_frame, drips, begins_a_frame_of_two_gigabytes])
def test_where_there_is_no_other_bookie_the_error_names_the_one_there_is(lie: Lie) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            async with await bk.create_ledger(ledger_id=LEDGER, ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
                await ledger.append(b"0")
            begin(cluster, BookieId("b1"), lie)
            async with await other.open_ledger(LEDGER) as reader:
                began = asyncio.get_running_loop().time()
                with pytest.raises((RequestTimedOutError, BookieUnavailableError), match="b1"):
                    await reader.read_entry(0)
                assert asyncio.get_running_loop().time() - began < 30

    cluster_of_liars(1).run(story)
