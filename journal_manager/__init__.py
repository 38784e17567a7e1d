"""HDFS-style edit logs over pluggable journals.

    log = await EditLog.open("file:///data/edits")          # claim an epoch, fence, recover
    txid = await log.log(b"an edit")                        # durable, in groups
    await log.save_snapshot(txid, [b"the state"])           # so that a replay is bounded
    snapshots = await open_snapshots("file:///data/edits")  # read by anybody

    reader = await open_reader("file:///data/edits")        # beside the writer, without disturbing it
    async for op in tail(reader, 1): ...

    async with replicated("file:///data/edits", machine) as replica:  # a program's state on several replicas
        answer = await replica.submit(b"an edit")                     # durable, applied once on each of them

Addresses: ``mem:NAME`` (this process), ``file:///DIRECTORY``, ``bk+embedded:///DIR?bookies=3``, ``bk+sqlite:///FILE``
and ``bk+zk://HOST:PORT/ROOT`` (one ledger per segment, on the cluster at the address behind ``bk+``; ``name=NAME``
names the journal), ``bk:NAME`` (the same, with the option ``client=`` or ``metadata=``), ``set:`` (several journals, by
the option ``members=``). Others by entry points ``journal.backends``.
"""

from __future__ import annotations

from journal_manager.backend import (
    Backend,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    RecoveryReport,
    SegmentWriter,
)
from journal_manager.capabilities import (
    Described,
    Discard,
    JournalDescription,
    Orphan,
    OrphanSweep,
    Upgrade,
    capability,
)
from journal_manager.checkpoints import CheckpointPolicy
from journal_manager.edit_log import EditLog, EditLogConfig
from journal_manager.edit_reader import read_ops
from journal_manager.election import Election, open_election
from journal_manager.errors import (
    ElectionLostError,
    JournalClosedError,
    JournalConfigError,
    JournalCorruptionError,
    JournalDiskError,
    JournalError,
    JournalExistsError,
    JournalFailedError,
    JournalFencedError,
    JournalGapError,
    JournalLockedError,
    JournalNotFormattedError,
    JournalOverloadedError,
    JournalUnavailableError,
    NamespaceMismatchError,
    NotActiveError,
    NotEnoughJournalsError,
    OpTooLargeError,
    ReplicaFailedError,
    RequestForgottenError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
    SnapshotAheadError,
    SnapshotNotFoundError,
    UnknownSchemeError,
    UnsupportedCapabilityError,
    UnsupportedLayoutError,
    UpgradeError,
)
from journal_manager.fencing_token import FencingToken
from journal_manager.measured_writer import JournalFigures, JournalStats, MeasuredWriter
from journal_manager.merged_reader import read_ops_over
from journal_manager.open_journal import format_journal, has_data, open_reader, open_snapshots, open_writer
from journal_manager.ops import Batch, Op
from journal_manager.registry import JournalURI, backend_for, installed_backends, parse_uri
from journal_manager.replica import ReplicaRole
from journal_manager.replicated_program import ReplicaConfig, ReplicaStatus, Replicated, StateMachine, replicated
from journal_manager.requests import RequestAnswer, RequestId, RequestTable
from journal_manager.retention import RetentionPlan, RetentionPolicy, plan_retention
from journal_manager.segment import SegmentInfo, SegmentState
from journal_manager.set_rules import Member, MemberState, MemberStatus
from journal_manager.snapshots import Chunks, SnapshotInfo, SnapshotStore, restore_newest
from journal_manager.tailer import tail
from journal_manager.txid import FIRST_TXID, NOTHING, TxId

__all__ = [
    "FIRST_TXID",
    "NOTHING",
    "Backend",
    "Batch",
    "CheckpointPolicy",
    "Chunks",
    "Described",
    "Discard",
    "EditLog",
    "EditLogConfig",
    "Election",
    "ElectionLostError",
    "FencingToken",
    "JournalClosedError",
    "JournalConfigError",
    "JournalCorruptionError",
    "JournalDescription",
    "JournalDiskError",
    "JournalError",
    "JournalExistsError",
    "JournalFailedError",
    "JournalFencedError",
    "JournalFigures",
    "JournalGapError",
    "JournalLockedError",
    "JournalNotFormattedError",
    "JournalOverloadedError",
    "JournalReader",
    "JournalStats",
    "JournalURI",
    "JournalUnavailableError",
    "JournalWriter",
    "MeasuredWriter",
    "Member",
    "MemberState",
    "MemberStatus",
    "NamespaceInfo",
    "NamespaceMismatchError",
    "NotActiveError",
    "NotEnoughJournalsError",
    "Op",
    "OpTooLargeError",
    "Orphan",
    "OrphanSweep",
    "RecoveryReport",
    "ReplicaConfig",
    "ReplicaFailedError",
    "ReplicaRole",
    "ReplicaStatus",
    "Replicated",
    "RequestAnswer",
    "RequestForgottenError",
    "RequestId",
    "RequestTable",
    "RetentionPlan",
    "RetentionPolicy",
    "SegmentExistsError",
    "SegmentInfo",
    "SegmentMismatchError",
    "SegmentNotFoundError",
    "SegmentState",
    "SegmentWriter",
    "SnapshotAheadError",
    "SnapshotInfo",
    "SnapshotNotFoundError",
    "SnapshotStore",
    "StateMachine",
    "TxId",
    "UnknownSchemeError",
    "UnsupportedCapabilityError",
    "UnsupportedLayoutError",
    "Upgrade",
    "UpgradeError",
    "backend_for",
    "capability",
    "format_journal",
    "has_data",
    "installed_backends",
    "open_election",
    "open_reader",
    "open_snapshots",
    "open_writer",
    "parse_uri",
    "plan_retention",
    "read_ops",
    "read_ops_over",
    "replicated",
    "restore_newest",
    "tail",
]
