"""Every decoder of bytes that come from a peer, a disk or the metadata, with the error that it declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bookkeeper import codec, wire
from bookkeeper.access.policy_format import decode_policy
from bookkeeper.access.usage import Usage
from bookkeeper.auth.provider import TOKEN_MAX
from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.bookie.connections.handshake import Handshake
from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.owner_file import decode_owners
from bookkeeper.errors import (
    BookKeeperError,
    ConfigError,
    CorruptionError,
    MalformedFrameError,
    MetadataError,
    StorageError,
)
from bookkeeper.gateways.tokens import TokenBook
from bookkeeper.ids import LedgerId
from bookkeeper.leases.lease import LeaseValue
from bookkeeper.meta.records import (
    cookies,
    deleted_ids,
    deleted_ledgers,
    layout,
    ledger_format,
    locations,
    service_info,
)
from bookkeeper.meta.records.access_servers import AccessReport
from bookkeeper.meta.records.autorecovery import decode_vote
from bookkeeper.meta.records.disks import DiskProgress
from bookkeeper.meta.records.lineage import Lineage
from bookkeeper.meta.records.under_replication import decode_mark
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.journal.journal_format import FileHeader, GroupHeader
from bookkeeper.storage.scrub.scrub_notes import ScrubNotes
from bookkeeper.volumes.disks.volume_list import VolumeList
from bookkeeper.volumes.map.placement_file import decode_placements
from bookkeeper.wire import Dialect
from bookkeeper.wire.availability import decode_availability
from journal_manager import JournalError
from journal_manager.backends import file_format
from journal_manager.backends.bookkeeper.snapshot_index import decode_index
from journal_manager.edits.ops import decode_ops
from journal_manager.hdfs.op_codec import decode_hdfs_op
from journal_manager.journals.chain import Chain
from segments.chain.chain_codec import decode_chain
from segments.config import StreamConfig
from segments.cursors.cursor_format import decode_cursor
from segments.entries.footer import SegmentFooter
from segments.entries.stored_entry import decode_entry
from segments.errors import StreamError
from segments.gateway.guard.request_parser import RequestParser
from segments.producers import ProducerTable
from segments.protocol.methods import METHODS
from segments.protocol.resume_token import ResumeToken
from segments.retention.holds import Holds
from segments.write.state.snapshot import decode_snapshot
from spark_wal.checkpoints import logs
from spark_wal.checkpoints.lz4_blocks import BlockStreamError, read_stream
from spark_wal.hadoop_tokens import TokenFormatError, password_of
from spark_wal.webhdfs.files.paths import BadTargetError, decode_path
from spark_wal.webhdfs.files.records import RecordFormatError, decode_record
from spark_wal.webhdfs.http import oauth2
from spark_wal.webhdfs.http.parameters import Query

FRAME_MAX: Final = 1 << 20
LEDGER: Final = LedgerId(7)


@dataclass(frozen=True, slots=True)
class Decoder:
    """One decoder."""

    name: str
    decode: Callable[[bytes], Any]
    errors: tuple[type[BaseException], ...]


def _adds(v2: bool, data: bytes) -> object:
    adds = codec.split_adds(bytearray(data), 0, len(data), FRAME_MAX, v2, bytearray(2 * len(data) + 4096))
    return adds.used, len(adds.runs), adds.slow, adds.v2


def _reads(v2: bool, data: bytes) -> object:
    return list(codec.split_reads(bytearray(data), 0, len(data), FRAME_MAX, v2).ends)


def _request(data: bytes) -> object:
    return wire.DialectDetector().decode(data)


def _handshake(data: bytes) -> object:
    handshake = Handshake("required", authenticates=True)
    step = handshake.next_step(bytearray(data), 0, len(data))
    assert len(data) <= TOKEN_MAX or type(step).__name__ != "AskProvider"
    return type(step).__name__


def _text(decode: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: decode(data.decode("latin-1"))


def _query(data: bytes) -> object:
    query = Query(data.decode("latin-1"))
    return query.op, query.text("destination"), query.given("namenoderpcaddress")


def _grpc(key: str) -> Callable[[bytes], Any]:
    def decode(data: bytes) -> object:
        parser = RequestParser(METHODS[key], 1000)
        parser.elements(data)
        return parser.parse(data)

    return decode


def _grant(data: bytes) -> object:
    half = len(data) // 2
    return oauth2.grant(TokenBook.parse("", "f"), data[:half], data[half:].decode("latin-1"), 0).status


WIRE: Final = (MalformedFrameError,)
META: Final = (MetadataError,)
DISK: Final = (StorageError, CorruptionError)
STREAM: Final = (StreamError,)
JOURNAL: Final = (JournalError,)

DECODERS: Final = (
    Decoder("wire-request", _request, WIRE),
    Decoder("wire-reply-v2", partial(wire.decode_reply, dialect=Dialect.V2), WIRE),
    Decoder("wire-reply-v3", partial(wire.decode_reply, dialect=Dialect.V3), WIRE),
    Decoder("wire-adds-v2", partial(_adds, True), WIRE),
    Decoder("wire-adds-v3", partial(_adds, False), WIRE),
    Decoder("wire-reads-v2", partial(_reads, True), WIRE),
    Decoder("wire-reads-v3", partial(_reads, False), WIRE),
    Decoder("wire-availability", decode_availability, WIRE),
    Decoder("wire-handshake", _handshake, ()),
    Decoder("disk-journal-header", lambda data: FileHeader.decode(data, "f"), DISK),
    Decoder("disk-journal-group", lambda data: GroupHeader.decode(data, 1, 0), DISK),
    Decoder("disk-manifest", lambda data: Manifest.decode(data, "f"), DISK),
    Decoder("disk-scrub-notes", lambda data: ScrubNotes.decode(data, "f"), DISK),
    Decoder("disk-note", checked_note.decode, (ValueError,)),
    Decoder("disk-owners", lambda data: decode_owners(data, "f"), DISK),
    Decoder("disk-volumes", lambda data: VolumeList.decode(data, "f"), DISK),
    Decoder("disk-placements", lambda data: decode_placements(data, 1, "f"), DISK),
    Decoder("meta-ledger", ledger_format.decode, META),
    Decoder("meta-cookie", cookies.decode, META),
    Decoder("meta-layout", layout.decode, META),
    Decoder("meta-service", service_info.decode, META),
    Decoder("meta-deleted-ids", lambda data: deleted_ids.decode(data, "ids"), META),
    Decoder("meta-deleted-ledger", lambda data: deleted_ledgers.decode(LEDGER, data), META),
    Decoder("meta-locations", locations.decode, META),
    Decoder("meta-lineage", Lineage.decode, META),
    Decoder("meta-progress", lambda data: DiskProgress.decode(data, "p"), META),
    Decoder("meta-mark", lambda data: decode_mark("/m", data), META),
    Decoder("meta-vote", decode_vote, META),
    Decoder("meta-policy", decode_policy, (BookKeeperError,)),
    Decoder("meta-usage", Usage.decode, (BookKeeperError,)),
    Decoder("meta-access-report", AccessReport.decode, META),
    Decoder("meta-autorecovery", AutorecoveryReport.decode, META),
    Decoder("meta-lease", LeaseValue.decode, (ValueError, KeyError, TypeError)),
    Decoder("stream-chain", decode_chain, STREAM),
    Decoder("stream-config", StreamConfig.decode, STREAM),
    Decoder("stream-cursor", decode_cursor, STREAM),
    Decoder("stream-entry", decode_entry, STREAM),
    Decoder("stream-footer", SegmentFooter.decode, STREAM),
    Decoder("stream-holds", Holds.decode, STREAM),
    Decoder("stream-producers", ProducerTable.decode, STREAM),
    Decoder("stream-snapshot", decode_snapshot, STREAM),
    Decoder("grpc-resume", ResumeToken.decode, STREAM),
    Decoder("grpc-append", _grpc("Append.Append"), STREAM),
    Decoder("grpc-create", _grpc("Streams.Create"), STREAM),
    Decoder("grpc-publish", _grpc("Append.Publish"), STREAM),
    Decoder("journal-chain", Chain.decode, JOURNAL),
    Decoder("journal-ops", decode_ops, JOURNAL),
    Decoder("journal-file", lambda data: file_format.decode_header(data, "edits_1"), JOURNAL),
    Decoder("journal-snapshots", decode_index, JOURNAL),
    Decoder("hdfs-op", lambda data: decode_hdfs_op(data[0] if data else 0, data[1:]), JOURNAL),
    Decoder("webhdfs-record", lambda data: decode_record(data[0] if data else 0, data[1:]), (RecordFormatError,)),
    Decoder("webhdfs-query", _query, ()),
    Decoder("webhdfs-path", _text(decode_path), (BadTargetError,)),
    Decoder("webhdfs-grant", _grant, ()),
    Decoder("webhdfs-token", _text(password_of), (TokenFormatError,)),
    Decoder("tokens", lambda data: TokenBook.parse(data.decode("latin-1"), "f"), (ConfigError,)),
    Decoder("spark-offsets", logs.read_offsets, (logs.LogFormatError,)),
    Decoder("spark-commit", logs.read_commit, (logs.LogFormatError,)),
    Decoder("spark-operator", logs.read_operator, (logs.LogFormatError,)),
    Decoder("spark-lz4", read_stream, (BlockStreamError,)),
)
