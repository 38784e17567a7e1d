"""Sixty-seven corners in which an implementation of the protocol goes wrong, by number.

Each is kept by the function here that carries its number, if it is a bookie's, or by the test that is named for it. The
list has no hole. Differences from Apache's bookie are on docs/compatibility.md.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.testing import Fault
from bookkeeper.wire import Dialect, Status
from bookkeeper.wire import bookkeeper_pb2 as pb
from tests.bookkeeper.bookie import cluster as whole
from tests.bookkeeper.bookie.house import KEY, House, RawPeer, run

ROOT = Path(__file__).resolve().parents[3]
L, OTHER = LedgerId(7), LedgerId(8)
WRONG = b"w" * 20
V2, V3 = Dialect.V2, Dialect.V3

Story = Callable[[House], Awaitable[None]]
HERE: dict[int, Story] = {}


def corner(number: int) -> Callable[[Story], Story]:
    """Register the test of a corner."""

    def register(story: Story) -> Story:
        assert number not in HERE
        HERE[number] = story
        return story

    return register


ELSEWHERE: dict[int, str] = {
    18: "bookie/test_gotchas.py::test_who_comes_before_the_bookie_is_ready_is_sent_away",
    20: "ledger/test_digest.py::test_entries_are_sealed_and_opened_like_the_official_ones",
    21: "ledger/test_digest.py::test_master_keys_are_those_of_the_official_client",
    22: "ledger/test_digest.py::test_entries_are_sealed_and_opened_like_the_official_ones",
    26: "meta/records/test_layout.py::test_ledgers_lie_where_java_puts_them",
    27: "meta/records/test_ledger_ids.py::test_ids_count_up_and_leave_nothing_behind",
    28: "meta/records/test_ledger_format.py::test_what_java_wrote_is_read_as_java_reads_it_and_written_again_as_it_was",
    29: "meta/records/test_ledger_format.py::test_odd_and_broken_bytes_are_read_or_refused_as_in_java",
    30: "meta/records/test_ledger_format.py::test_what_java_wrote_is_read_as_java_reads_it_and_written_again_as_it_was",
    31: "meta/records/test_ledger_format.py::test_what_java_wrote_is_read_as_java_reads_it_and_written_again_as_it_was",
    32: "meta/records/test_service_info.py::test_empty_bytes_mean_the_id_is_the_address",
    33: "meta/records/test_service_info.py::test_a_plain_bookie_publishes_javas_sample",
    34: "meta/records/test_bookies.py::test_the_new_mode_is_published_before_the_old_one_goes",
    35: "bookie/identity/test_bookie_identity.py::test_the_first_start_makes_a_cookie_and_later_ones_find_it",
    36: "meta/records/test_paths.py::test_javas_names",
    37: "meta/records/test_paths.py::test_javas_names",
    38: "meta/records/test_ledgers.py::test_of_many_that_close_at_once_one_decides_the_end",
    39: "meta/records/test_ledger_format.py::test_no_bytes_do_anything_but_raise_the_format_error",
    40: "ledger/test_quorum.py::test_write_sets_and_stripes_are_those_of_the_official_client",
    41: "ledger/write/test_writer.py::test_nothing_is_confirmed_while_a_change_is_in_flight",
    42: "ledger/test_metadata.py::test_a_new_ensemble_replaces_the_fragment_that_begins_there_or_follows_it",
    43: "ledger/test_quorum.py::test_coverage_is_that_of_the_official_client",
    44: "ledger/recovery/test_recovery.py::test_a_failing_bookie_is_replaced_privately_and_reads_stay_with_the_old_one",
    45: "ledger/write/test_writer.py::test_one_fenced_reply_ends_the_handle_for_good",
    46: "ledger/recovery/test_recovery.py::test_the_length_is_read_from_the_last_entry_if_nothing_is_written_back",
    47: "ledger/recovery/test_recovery.py::test_entries_are_written_back_in_order_with_the_frozen_last_add_confirmed",
    48: "client/read/test_entry_source.py::test_a_bookie_that_refuses_batches_is_asked_for_single_entries",
    52: "bookie/garbage/test_garbage_collector.py::test_deleted_ledgers_are_dropped_after_proof_and_stay_dead",
    57: "client/bookies/test_bookie_pool.py::test_a_bookie_that_cannot_be_reached_is_left_alone_for_a_while_that_grows",
    58: "ledger/write/test_writer.py::test_without_a_spare_appends_go_on_while_an_ack_quorum_answers",
    59: "ledger/write/test_writer.py::test_a_change_that_finds_the_ledger_ended_ends_the_handle",
    64: "client/test_bookkeeper.py::test_a_deleted_ledger_is_gone_and_its_id_is_not_given_out_again",
    65: "replication/decommissioning/test_drain.py::test_one_ledger_that_cannot_be_moved_does_not_hold_up_the_others",
    66: "meta/records/test_layout.py::test_a_walk_over_a_tree_of_java_finds_its_ledgers_in_order",
    67: "ledger/write/test_writer.py::test_callers_must_wait_while_too_much_is_pending",
}
"""Corners of clients and of metadata, and the tests below tests/bookkeeper that keep them."""


def entry(entry_id: int, *, ledger: int = L, lac: int = -1, payload: bytes = b"p") -> bytes:
    return codec.encode_adds(2, ledger, entry_id, [payload], lac, 0, KEY, 3)[0][28:]


def add(entry_id: int, *, ledger: LedgerId = L, key: bytes = KEY, lac: int = -1, **more: Any) -> wire.AddEntry:
    return wire.AddEntry(ledger, EntryId(entry_id), key, entry(entry_id, ledger=ledger, lac=lac), **more)


def read(entry_id: int, *, ledger: LedgerId = L, **more: Any) -> wire.ReadEntry:
    return wire.ReadEntry(ledger, EntryId(entry_id), **more)


def fence(entry_id: int = -1, *, ledger: LedgerId = L, key: bytes = KEY) -> wire.ReadEntry:
    return read(entry_id, ledger=ledger, master_key=key, fence=True)


async def ask(house: House, request: wire.Request, dialect: Dialect = V3) -> Any:
    connection = await house.client(dialect)
    try:
        return await connection.request(request, 100)
    finally:
        connection.close()


async def status(house: House, request: wire.Request, dialect: Dialect = V3) -> Status:
    return (await ask(house, request, dialect)).status  # type: ignore[no-any-return]


async def exchange(house: House, *frames: bytes) -> RawPeer:
    """What came back for raw frames, after a while."""
    peer = await house.raw()
    for frame in frames:
        peer.send(frame)
    await asyncio.sleep(1)
    return peer


def framed(body: bytes) -> bytes:
    return pack(">I", len(body)) + body


# -- the wire ------------------------------------------------------------------------------------------------


@corner(1)
async def _the_length_is_without_itself_and_the_limit_with(house: House) -> None:
    limit = 5 * 1024 * 1024
    peer = await exchange(house, pack(">I", limit - 4))
    assert not peer.closed, "a frame that just fits is awaited"
    assert (await exchange(house, pack(">I", limit - 3))).closed, "one that does not is not"


@corner(2)
async def _v3_until_the_first_v2_frame_and_never_again(house: House) -> None:
    third = wire.encode_request(wire.ForceLedger(L), V3, 1)
    second = wire.encode_request(read(0), V2)
    peer = await exchange(house, wire.encode_request(wire.StartTls(), V3, 3), third, second)
    assert [body[0] for body in peer.frames] == [0x0A, 0x0A, 0x02] and not peer.closed
    peer.send(third)
    await asyncio.sleep(1)
    assert peer.closed


@corner(3)
async def _each_dialect_has_numbers_of_its_own(house: House) -> None:
    for dialect, number in ((V2, b"\0\0\0\1"), (V3, b"\x10\x92\x03")):
        [body] = (await exchange(house, wire.encode_request(read(0), dialect, 1))).frames
        assert number in body, "no such ledger: 1 or 402"


@corner(4)
async def _ids_are_those_of_the_request(house: House) -> None:
    await status(house, add(5))
    for dialect in Dialect:
        reply = await ask(house, read(-1), dialect)
        assert (reply.entry_id, reply.entry) == (-1, entry(5))
    await status(house, add(6, lac=5))
    reply = await ask(house, read(-1, previous_lac=4, timeout_ms=10, piggyback=True))
    assert (reply.entry_id, reply.entry) == (5, entry(5)), "the one exception"


@corner(5)
async def _errors_are_whole_messages_with_one_status_twice(house: House) -> None:
    for request, name in ((read(3), "readResponse"), (wire.WriteLac(L, 1, KEY, pack(">qq", 7, 1)), "writeLacResponse")):
        house.bookie.read_only = True
        [body] = (await exchange(house, wire.encode_request(request, V3, 9))).frames
        answer = pb.Response.FromString(body)
        inner = getattr(answer, name)
        assert answer.HasField(name) and inner.IsInitialized() and inner.status == answer.status != 0
        assert inner.ledgerId == L


@corner(6)
async def _v2_auth_has_no_status_and_batch_errors_a_request_id(house: House) -> None:
    auth = wire.encode_request(wire.Auth("some-plugin", b"hello"), V2)
    batch = wire.encode_request(wire.BatchRead(L, EntryId(0), 77, 1, 100), V2)
    first, second = (await exchange(house, auth, batch)).frames
    assert first == b"\2\3\0\0" + pb.AuthMessage(authPluginName=b"AuthDisabledPlugin", payload=b"").SerializeToString()
    assert second == b"\2\7\0\0" + pack(">iqqq", 1, L, 0, 77)


@corner(7)
async def _v2_read_errors_end_after_the_ids(house: House) -> None:
    [body] = (await exchange(house, wire.encode_request(read(0), V2))).frames
    assert len(body) == 24


@corner(8)
async def _negative_numbers_take_ten_bytes(house: House) -> None:
    await status(house, add(0))
    [body] = (await exchange(house, wire.encode_request(read(-1), V3, 1))).frames
    assert b"\xff" * 9 + b"\x01" in body


@corner(9)
async def _fields_may_come_in_any_order(house: House) -> None:
    await status(house, add(0))
    flag, rest = b"\xa0\x06\x01", b"\x08\x07\x10\x00\x1a\x14" + KEY
    for inner in (flag + rest, rest + flag):
        body = b"\xa2\x06" + bytes((len(inner),)) + inner
        unknown = b"\xfa\x3f\x03abc"  # field 1023, of a later version
        head = b"\x0a\x06\x08\x03\x10\x01\x18\x05"
        for whole_ in (head + body, body + head, head + unknown + body):
            [answer] = (await exchange(house, framed(whole_))).frames
            assert pb.Response.FromString(answer).readResponse.body == entry(0)
    assert await status(house, add(1)) is Status.FENCED, "the flag was seen"


@corner(10)
async def _doubt_is_not_told_to_v2_clients(house: House) -> None:
    house.engine.doubt({L})
    assert await status(house, read(0)) is Status.UNKNOWN_STATE
    assert await status(house, read(0), V2) is Status.IO_ERROR
    assert await status(house, wire.BatchRead(L, EntryId(0), 1, 1, 100), V2) is Status.IO_ERROR


@corner(11)
async def _each_of_several_equal_requests_is_answered(house: House) -> None:
    await status(house, add(0))
    for dialect in Dialect:
        assert len((await exchange(house, wire.encode_request(read(0), dialect, 4) * 5)).frames) == 5
        assert len((await exchange(house, wire.encode_request(add(1), dialect, 4) * 5)).frames) == 5


@corner(12)
async def _one_ledgers_requests_keep_their_order(house: House) -> None:
    requests: list[wire.Request] = [add(0), fence(), add(1)]
    peer = await exchange(house, *(wire.encode_request(request, V3, 1 + at) for at, request in enumerate(requests)))
    answers = {(a := pb.Response.FromString(body)).header.txnId: a for body in peer.frames}
    assert [answers[i].status for i in (1, 2, 3)] == [0, 0, 504]
    assert answers[2].readResponse.body == entry(0)


@corner(13)
async def _without_auth_whoever_brings_it_is_let_in(house: House) -> None:
    for dialect in Dialect:
        reply = await ask(house, wire.Auth("any", b"token"), dialect)
        assert (reply.status, reply.plugin, reply.payload) == (Status.OK, "AuthDisabledPlugin", b"")
    assert await status(house, read(0)) is Status.NO_LEDGER, "and nobody has to"


@corner(14)
async def _start_tls_is_answered_in_clear(house: House) -> None:
    [body] = (await exchange(house, wire.encode_request(wire.StartTls(), V3, 3))).frames
    answer = pb.Response.FromString(body)
    assert (answer.header.txnId, answer.status) == (3, pb.EBADREQ), "this one has no TLS"


@corner(15)
async def _transaction_ids_are_anybodys(house: House) -> None:
    ids = (2**64 - 1, 17, 3, 2**40)
    peer = await exchange(house, *(wire.encode_request(read(0), V3, txn) for txn in ids))
    assert [pb.Response.FromString(body).header.txnId for body in peer.frames] == list(ids)


@corner(16)
async def _a_ledger_without_data_has_no_lac_entry(house: House) -> None:
    assert await status(house, wire.ReadLac(OTHER)) is Status.NO_ENTRY


@corner(17)
async def _forcing_an_unknown_ledger_succeeds(house: House) -> None:
    assert await status(house, wire.ForceLedger(OTHER)) is Status.OK
    assert OTHER not in house.engine.ledgers()


@corner(19)
async def _explicit_lacs_pass_fences_and_need_no_key_to_read(house: House) -> None:
    await status(house, add(0))
    await status(house, fence())
    assert await status(house, wire.WriteLac(L, 0, KEY, pack(">qq", L, 0))) is Status.OK
    assert (await ask(house, wire.ReadLac(L))).lac_body == pack(">qq", L, 0)
    assert await status(house, wire.ListEntries(L)) is Status.OK


# -- entries -------------------------------------------------------------------------------------------------


@corner(23)
async def _ids_and_lengths_are_signed(house: House) -> None:
    stored = entry(0)
    assert stored[16:24] == b"\xff" * 8
    await status(house, add(0))
    assert (await ask(house, read(0))).max_lac == -1


@corner(24)
async def _copies_may_differ_in_their_lac(house: House) -> None:
    assert await status(house, add(3, lac=-1)) is Status.OK
    assert await status(house, add(3, lac=2, recovery=True)) is Status.OK, "the same entry, written back"


@corner(25)
async def _digests_are_clients_business(house: House) -> None:
    data = entry(0)[:32] + b"\0\0\0\0no digest at all"
    assert await status(house, wire.AddEntry(L, EntryId(0), KEY, data)) is Status.OK
    assert (await ask(house, read(0))).entry == data


# -- the bookie ----------------------------------------------------------------------------------------------


@corner(49)
async def _a_fence_is_durable_before_its_answer(house: House) -> None:
    await status(house, add(0))
    house.node.freeze()
    peer = await exchange(house, wire.encode_request(fence(9), V3, 1))
    assert peer.frames == []
    assert await status(house, add(1)) is Status.FENCED, "check and add are one step"
    house.node.thaw()
    await asyncio.sleep(1)
    assert len(peer.frames) == 1
    assert await status(house, fence(key=WRONG)) is Status.UNAUTHORIZED


@corner(50)
async def _a_fence_creates_the_ledger(house: House) -> None:
    assert await status(house, fence()) is Status.NO_ENTRY
    assert await status(house, add(0)) is Status.FENCED


@corner(51)
async def _no_is_said_by_those_who_know(house: House) -> None:
    await status(house, add(0))
    house.disk_engine._unknowns._index_damaged = True
    assert await status(house, read(1)) is Status.UNKNOWN_STATE
    assert await status(house, read(0)) is Status.OK


@corner(53)
async def _deleted_ledgers_stay_refused(house: House) -> None:
    await status(house, add(0))
    done: list[Any] = []
    house.engine.collect({L}, done.append)
    await asyncio.sleep(1)
    assert done == [None]
    assert await status(house, add(1)) is Status.FENCED
    assert await status(house, add(1, recovery=True)) is Status.FENCED
    assert await status(house, fence()) is Status.NO_LEDGER
    assert await status(house, wire.WriteLac(L, 0, KEY, pack(">qq", L, 0))) is Status.NO_LEDGER


@corner(54)
async def _a_read_only_bookie_still_answers(house: House) -> None:
    await status(house, add(0))
    house.bookie.read_only = True
    served: list[wire.Request] = [read(0), fence(), wire.ReadLac(L), wire.ForceLedger(L), wire.ListEntries(L)]
    for request in served:
        assert await status(house, request) is Status.OK
    refused: list[wire.Request] = [add(1), add(1, deferred_sync=True), wire.WriteLac(L, 0, KEY, pack(">qq", L, 0))]
    for request in refused:
        assert await status(house, request) is Status.READ_ONLY


@corner(55)
async def _the_lac_known_is_that_of_entries_and_explicit_ones(house: House) -> None:
    for entry_id in range(3):  # pipelined: none knew of the others
        await status(house, add(entry_id))
    assert (await ask(house, read(2))).max_lac == -1
    await status(house, wire.WriteLac(L, 2, KEY, pack(">qq", L, 2)))
    assert (await ask(house, read(2))).max_lac == 2, "v3 sees it"
    assert (await ask(house, read(2), V2)).max_lac is None, "v2 has no field for it"


@corner(56)
async def _waiting_readers_hold_nobody_up(house: House) -> None:
    await status(house, add(0))
    poll = read(-1, previous_lac=0, timeout_ms=30_000, piggyback=True)
    peer = await exchange(house, *(wire.encode_request(poll, V3, txn) for txn in range(1, 51)))
    assert peer.frames == [] and await status(house, add(2, lac=1)) is Status.OK
    await asyncio.sleep(1)
    assert len(peer.frames) == 50
    answer = pb.Response.FromString(peer.frames[0]).readResponse
    assert (answer.maxLAC, answer.entryId, answer.body) == (1, -1, b""), "new, though this bookie has no entry 1"


@corner(60)
async def _refused_fences_do_not_fence_and_repeats_are_no_error(house: House) -> None:
    await status(house, add(0))
    assert await status(house, fence(key=WRONG)) is Status.UNAUTHORIZED
    assert await status(house, add(1)) is Status.OK
    await status(house, fence())
    assert await status(house, add(9, recovery=True)) is Status.OK, "holes, in any order, behind a fence"
    assert await status(house, add(4, recovery=True)) is Status.OK
    assert await status(house, add(9, recovery=True)) is Status.OK
    assert await status(house, add(10, recovery=True, key=WRONG)) is Status.UNAUTHORIZED
    assert await status(house, add(0, ledger=OTHER, recovery=True)) is Status.OK
    assert await status(house, add(1, ledger=OTHER)) is Status.OK, "created, and not fenced"


@corner(61)
async def _what_nobody_knows_is_refused_or_ends_the_connection(house: House) -> None:
    for opcode in (0, 4, 5, 6, 8, 127):
        assert (await exchange(house, framed(bytes((2, opcode, 0, 0)) + bytes(36)))).closed
    peer = await exchange(house, framed(b"\3\2\0\0" + pack(">qq", L, 0)), wire.encode_request(read(0), V2))
    assert [body[4:8] for body in peer.frames] == [pack(">i", 103), pack(">i", 1)] and not peer.closed
    for operation in (3, 4, 12):
        [body] = (await exchange(house, framed(b"\x0a\x06\x08\x03\x10" + bytes((operation,)) + b"\x18\x05"))).frames
        answer = pb.Response.FromString(body)
        assert (answer.status, [field.name for field, _ in answer.ListFields()]) == (pb.EBADREQ, ["header", "status"])


@corner(62)
async def _a_batch_of_no_bytes_is_one_entry(house: House) -> None:
    for entry_id in range(5):
        await status(house, add(entry_id))
    for size in (0, 1, -1):
        body = (await ask(house, wire.BatchRead(L, EntryId(1), 1, 0, size), V2)).body
        assert bytes(body) == framed(entry(1))
    assert await status(house, wire.BatchRead(L, EntryId(5), 1, 0, 100), V2) is Status.NO_ENTRY


@corner(63)
async def _deferred_adds_move_no_lac(house: House) -> None:
    for entry_id in range(3):
        assert await status(house, add(entry_id, deferred_sync=True)) is Status.OK
    assert await status(house, wire.ForceLedger(L)) is Status.OK
    assert (await ask(house, read(2))).max_lac == -1, "the writer's next entry says it, or an explicit one"
    house.node.disk.faults.append(Fault(operation="pwrite", code=5, path="journal"))
    assert await status(house, add(3, deferred_sync=True)) is Status.OK
    assert await status(house, wire.ForceLedger(L)) is Status.IO_ERROR


# -- the list ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", sorted(HERE))
def test_a_bookie_keeps_the_corner(number: int) -> None:
    run(HERE[number])


def test_who_comes_before_the_bookie_is_ready_is_sent_away() -> None:
    async def main(cluster: whole.Cluster) -> None:
        client = cluster.world.node("client")

        async def early() -> RawPeer:
            while True:
                try:
                    return await client.run(client.seams.net.connect(Address("b", 3181), RawPeer, timeout_s=5))
                except OSError:
                    await asyncio.sleep(0.0001)

        coming = asyncio.ensure_future(early())
        await cluster.up()
        peer = await coming
        peer.send(wire.encode_request(read(0), V3, 1))
        await asyncio.sleep(1)
        assert peer.closed and not peer.frames, "closed, not answered"

    whole.run(main)


def test_the_list_has_no_hole() -> None:
    assert sorted([*HERE, *ELSEWHERE]) == list(range(1, 68))


@pytest.mark.parametrize("number", sorted(ELSEWHERE))
def test_the_test_that_keeps_another_corner_exists(number: int) -> None:
    path, _, name = ELSEWHERE[number].partition("::")
    assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests/bookkeeper" / path).read_text(), re.MULTILINE)


def test_no_frame_is_shorter_than_its_packet() -> None:
    for body in (b"", b"\2\2\0", b"\2\2\0\0" + bytes(15), b"\2\2\0\1" + bytes(16)):
        with pytest.raises(MalformedFrameError):
            wire.DialectDetector(v2=True).decode(body)
