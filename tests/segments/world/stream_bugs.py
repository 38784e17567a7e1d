"""Bugs, planted to test the simulated worlds: worlds that do not find them are too weak.

Each replaces a piece of the program for as long as a world runs. The program knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from bookkeeper.chains.owned_node import OwnedNode
from bookkeeper.leases.lease import StoreLease
from bookkeeper.meta.store import Check
from bookkeeper.outcome import Outcome
from bookkeeper.testing.patches import Replacements, replaced
from segments.chain import SegmentContents, StreamChain, StreamHead, StreamSegment, stream_pages
from segments.cursors.cursor_owner import CursorOwner
from segments.cursors.cursor_state import CursorState
from segments.errors import StreamError
from segments.position import Position
from segments.producers import ProducerState, ProducerTable
from segments.publish import publisher
from segments.publish.batch_key import NewBatch
from segments.retention.deletion import LeakedLedgers
from segments.retention.removal import delete_ledgers
from segments.retention.retention_pass import RetentionPass
from segments.retention.stagings import Stagings
from segments.write import take_over
from segments.write.ledgers.open_segment import OpenSegment
from segments.write.output import entry_output
from segments.write.output.entry_output import EntryOutput
from segments.write.output.entry_sender import EntrySender
from segments.write.producer import Producer
from segments.write.state.contents_tally import ContentsTally
from segments.write.state.snapshot import encode_snapshot
from segments.write.state.stream_owner import StreamOwner
from segments.write.state.write_state import WriteState
from segments.write.writer import Writer
from tests.segments.world.world_state import STREAM

_BATCHES: Final = 1000
"""The seed from which worlds have batches."""


@dataclass(frozen=True, slots=True)
class StreamBug:
    """One planted bug."""

    what: str
    breaks: str
    """The rule that it breaks."""
    within: int
    """In so many worlds it must be found."""
    replacements: Callable[[], Replacements]
    first: int = 0
    """The seed from which it is looked for."""

    def planted(self) -> AbstractContextManager[None]:
        """The bug, for as long as a block runs."""
        return replaced(self.replacements())


def _former_owner_not_fenced() -> Replacements:
    async def segment_end(client: Any, owner: Any, segment: Any, policy: Any) -> Any:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as reader:
            return await take_over.read_end(reader, segment.number, policy)

    return {(take_over, "_segment_end"): segment_end}


def _producers_forgotten() -> Replacements:
    original = take_over.find_end

    async def forgetful(client: Any, owner: Any, policy: Any) -> Any:
        found = await original(client, owner, policy)
        found.state.producers = ProducerTable(policy)
        return found

    from segments.write import opening

    return {(opening, "find_end"): forgetful}


def _snapshot_alone() -> Replacements:
    async def apply(reader: Any, end: Any, entry: Any, pieces: Any) -> Any:
        contents = end.contents
        table, end.producers = end.producers, ProducerTable()
        try:
            return await original(reader, end, entry, pieces)
        finally:
            end.contents, end.producers = contents, table

    original = take_over._apply
    return {(take_over, "_apply"): apply}


def _told_before_durable() -> Replacements:
    write = EntrySender.write

    def early(self: EntrySender, log: Any) -> None:
        segment = self.open_segment
        assert segment is not None
        number, entry = segment.number, segment.next_entry
        write(self, log)
        log.resolve(number, entry)

    return {(EntrySender, "write"): early}


def _unknown_is_refused() -> Replacements:
    refuse = EntryOutput._refuse

    def refused(self: EntryOutput, group: Any, error: StreamError, outcome: Outcome = Outcome.REJECTED) -> None:
        refuse(self, group, error, Outcome.REJECTED)

    async def nobody_knows(self: StreamOwner, error: StreamError, number: int) -> int | None:
        return None

    return {(EntryOutput, "_refuse"): refused, (StreamOwner, "successor_end"): nobody_knows}


def _written_again_though_found() -> Replacements:
    def found(self: EntryOutput, unknown: Any, last: int) -> None:
        """What the recovery found is not looked at."""

    return {(EntryOutput, "_settle_recovered"): found}


def _pending_is_dropped() -> Replacements:
    return {(entry_output, "groups_of"): lambda flights: []}


def _overtaken_goes_on() -> Replacements:
    async def read(self: Any) -> Any:
        value, version = await self.node.read()
        self._epoch, self._nonce = value.epoch, value.nonce
        return value, version

    return {(OwnedNode, "_read"): read}


def _counter_without_recovered() -> Replacements:
    def behind(next_seq_no: int, *rest: Any) -> Any:
        return WriteState(max(0, next_seq_no - 1), *rest)

    return {(take_over, "WriteState"): behind}


def _one_record_not_counted() -> Replacements:
    contents = ContentsTally.contents

    def fewer(self: ContentsTally, *arguments: Any) -> SegmentContents:
        counted = contents(self, *arguments)
        return replace(counted, records=counted.records - 1) if counted.records > 1 else counted

    return {(ContentsTally, "contents"): fewer}


def _duplicates_told_wrongly() -> Replacements:
    find = ProducerState.find

    def wrong(self: ProducerState, sequence: int) -> Position | None:
        position = find(self, sequence)
        return None if position is None else position._replace(slot=0)

    return {(ProducerState, "find"): wrong}


def _pieces_forgotten() -> Replacements:
    apply = take_over._apply

    async def without(reader: Any, end: Any, entry: Any, pieces: Any) -> Any:
        if entry.piece is None:
            return await apply(reader, end, entry, pieces)
        end.contents.add_entry(entry.entry, entry.size)
        return []

    return {(take_over, "_apply"): without}


def _written_before_named() -> Replacements:
    begin = EntryOutput._begin

    async def early(self: Any, handle: Any, before: Any, again: Any = (), **options: Any) -> None:
        number = self._owner.chain.next_number
        self._machine.on_open(number, 0.0, 0.0)
        self.sender.begin_segment(OpenSegment(handle, number, self.sender.on_durable, self._on_failed, self._on_broken))
        for log in again:
            self.sender.write(log)
        while self._machine.waiting and self._machine.is_open:
            self._append(self._machine.next_waiting())
        self.sender.begin_segment = lambda segment: None
        try:
            await begin(self, handle, before, **options)
        finally:
            del self.sender.begin_segment

    return {(EntryOutput, "_begin"): early}


def _ledgers_deleted_first() -> Replacements:
    run = RetentionPass.run

    async def early(self: RetentionPass, **options: Any) -> Any:
        report = await self.explain()
        await delete_ledgers(self._client, [segment.ledger_id for segment in report.going], STREAM)
        return await run(self, **options)

    return {(RetentionPass, "run"): early}


def _owners_ledger_leaked() -> Replacements:
    async def needed(self: LeakedLedgers, stream_id: str, own: Any) -> set[int]:
        chain, _ = await StreamHead(self._client.metadata_store, stream_id).read()
        return set(chain.ledgers)

    return {(LeakedLedgers, "_needed_of"): needed}


def _leaks_are_kept() -> Replacements:
    async def needed(self: LeakedLedgers, stream_id: str, own: Any) -> set[int]:
        return {orphan.ledger for orphan in own}

    return {(LeakedLedgers, "_needed_of"): needed}


def _removal_forgotten() -> Replacements:
    remove = StreamChain.remove

    def forgetful(self: StreamChain, up_to: int) -> StreamChain:
        return replace(remove(self, up_to), removing=self.removing)

    return {(StreamChain, "remove"): forgetful}


def _page_named_first() -> Replacements:
    async def early(self: StreamOwner) -> None:
        while (page := self.chain.next_page()) is not None:
            await self.step(lambda chain, page=page: chain.fold(page))  # type: ignore[misc]
            await self.node.pages.write(page)

    return {(StreamOwner, "make_room"): early}


def _owners_page_swept() -> Replacements:
    return {(stream_pages, "_is_over"): lambda key, chain: True}


def _done_before_stored() -> Replacements:
    async def later(self: CursorOwner, changes: Any) -> None:
        self.acknowledge_later(changes)

    return {(CursorOwner, "acknowledge"): later}


def _all_before_is_done() -> Replacements:
    acknowledge = CursorState.acknowledge

    def cumulative(self: CursorState, changes: Any, *arguments: Any, **options: Any) -> Any:
        return acknowledge(self, [replace(each, first=None) for each in changes], *arguments, **options)

    return {(CursorState, "acknowledge"): cumulative}


def _lease_without_end() -> Replacements:
    return {(StoreLease, "is_held"): property(lambda self: self._value is not None)}  # type: ignore[dict-item]


def _opening_told_early() -> Replacements:
    announce, make = Writer.announce, Producer.__init__
    early: dict[tuple[str, int], int] = {}

    async def noted(self: Writer, producer: str, epoch: int, next_sequence: int) -> None:
        early[producer, epoch] = next_sequence
        await announce(self, producer, epoch, next_sequence)

    def made(self: Producer, writer: Any, name: str, epoch: int, last_sequence: int, **options: Any) -> None:
        make(self, writer, name, epoch, early.get((name, epoch), last_sequence + 1) - 1, **options)

    return {(Writer, "announce"): noted, (Producer, "__init__"): made}


def _batches_key_ignored() -> Replacements:
    return {(publisher, "judge_batch"): lambda key, known, stream, attempt: NewBatch(key.batch, 0)}


def _staging_not_ended() -> Replacements:
    return {(Stagings, "end"): lambda self, staging, ledgers: [Check(self._parent, None)]}


def _batches_base_forgotten() -> Replacements:
    return {(StreamSegment, "base"): property(lambda self: 0)}  # type: ignore[dict-item]


def _batches_leftovers_kept() -> Replacements:
    async def clean(self: Stagings, *arguments: Any, **options: Any) -> list[int]:
        return []

    return {(Stagings, "clean"): clean}


def _told_of_no_producers() -> Replacements:
    return {(publisher, "encode_snapshot"): lambda contents, table: encode_snapshot(contents, ProducerTable())}


BUGS: Final = {
    "former-owner-not-fenced": StreamBug(
        "A new owner reads the former owner's last ledger without fencing it.", "C2", 30, _former_owner_not_fenced
    ),
    "producers-forgotten": StreamBug("A new owner does not know the producers.", "C4", 10, _producers_forgotten),
    "snapshot-alone": StreamBug(
        "A new owner takes the last snapshot of producers for all of them.", "C4", 10, _snapshot_alone
    ),
    "told-before-durable": StreamBug("Appends are acknowledged when they are sent.", "W1", 30, _told_before_durable),
    "unknown-is-refused": StreamBug(
        "Whoever appended is told that a record of unknown outcome was not appended.", "W7", 30, _unknown_is_refused
    ),
    "written-again-though-found": StreamBug(
        "What the recovery of a failed ledger found is written to the next one as well.",
        "C4",
        40,
        _written_again_though_found,
    ),
    "pending-is-dropped": StreamBug(
        "What was on its way when a ledger failed is not written to the next one.", "C4", 40, _pending_is_dropped
    ),
    "overtaken-goes-on": StreamBug(
        "A writer whose record was claimed by another one goes on changing it.", "C5", 30, _overtaken_goes_on
    ),
    "counter-one-behind": StreamBug(
        "A new owner gives a sequence number a second time.", "C7", 10, _counter_without_recovered
    ),
    "one-record-not-counted": StreamBug(
        "A completed segment is said to have one record less.", "C7", 5, _one_record_not_counted
    ),
    "duplicates-told-wrongly": StreamBug(
        "A duplicate is answered with the position of the first record of its entry.",
        "C4",
        30,
        _duplicates_told_wrongly,
    ),
    "opening-told-early": StreamBug(
        "What the opening of a producer tells is read before its fence is durable.", "C4", 10, _opening_told_early
    ),
    "pieces-forgotten": StreamBug(
        "A new owner does not count a record in pieces that the former one wrote last.", "C4", 40, _pieces_forgotten
    ),
    "written-before-named": StreamBug(
        "A writer appends to a ledger before the record names it.", "C1", 20, _written_before_named
    ),
    "ledgers-deleted-first": StreamBug(
        "Retention deletes ledgers, and takes them out of the record afterwards.", "C6", 10, _ledgers_deleted_first
    ),
    "removal-forgotten": StreamBug(
        "Segments are taken out of the record, and their ledgers are not listed for deletion.",
        "C6",
        10,
        _removal_forgotten,
    ),
    "owners-ledger-leaked": StreamBug(
        "A search for leaked ledgers deletes one that the owner is about to name.", "C9", 40, _owners_ledger_leaked
    ),
    "leaks-are-kept": StreamBug("A search for leaked ledgers finds none.", "C9", 20, _leaks_are_kept),
    "page-named-first": StreamBug("A page is written after the record names it.", "C4", 10, _page_named_first),
    "owners-page-swept": StreamBug(
        "Retention deletes a page that the owner is about to name.", "C4", 60, _owners_page_swept
    ),
    "done-before-stored": StreamBug(
        "Whoever acknowledges a record by a cursor is told so before it is stored.", "C4", 20, _done_before_stored
    ),
    "all-before-is-done": StreamBug(
        "To acknowledge a record moves the cursor over those before it.", "C4", 5, _all_before_is_done
    ),
    "lease-without-end": StreamBug(
        "A gateway holds its lease for ever, by its own account.", "S11", 30, _lease_without_end
    ),
    "batch-key-ignored": StreamBug(
        "A batch that comes again with other rows is published again.", "S14", 10, _batches_key_ignored, _BATCHES
    ),
    "staging-not-ended": StreamBug(
        "A batch is published although it was given up, and its ledgers are deleted.",
        "S14",
        60,
        _staging_not_ended,
        _BATCHES,
    ),
    "base-forgotten": StreamBug(
        "The records of a published segment have the numbers that their task gave them.",
        "S14",
        5,
        _batches_base_forgotten,
        _BATCHES,
    ),
    "leftovers-kept": StreamBug(
        "Nobody deletes what was written for batches that were not published.",
        "C9",
        5,
        _batches_leftovers_kept,
        _BATCHES,
    ),
    "told-of-no-producers": StreamBug(
        "Between published segments the stream's producers are forgotten.", "C4", 30, _told_of_no_producers, _BATCHES
    ),
}
"""Name -> bug."""
