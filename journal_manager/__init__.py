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

Rooms, from the bottom
    edits       an edit, its transaction id, its segment, its writer's epoch
    snapshots   the state at a transaction id; what may be removed then
    journals    what a journal promises; found by its address, and opened
    read        edits of one journal, or of copies; tailing
    write       the edit log
    replicas    a program's state on several replicas
    backends    the stores; only entry points name them
    hdfs        HDFS's own edits
    commands    bk journal

``sync`` is the same for threads, ``testing`` the contract of backends as tests.

It may be imported before pytest looks at it (PYTEST_DONT_REWRITE).
"""

from journal_manager.edits import (
    FIRST_TXID,
    NOTHING,
    UNKNOWN_EPOCH,
    Batch,
    DiscardedEdits,
    EditRun,
    FencingToken,
    Op,
    RequestAnswer,
    RequestId,
    RequestTable,
    SegmentInfo,
    SegmentState,
    TxId,
)
from journal_manager.errors import (
    EditsDiscardedError,
    ElectionLostError,
    JournalClosedError,
    JournalConfigError,
    JournalCorruptionError,
    JournalDiskError,
    JournalError,
    JournalExistsError,
    JournalFailedError,
    JournalFencedError,
    JournalFullError,
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
from journal_manager.journals.backend import (
    Backend,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    RecoveryReport,
    SegmentWriter,
)
from journal_manager.journals.capabilities import (
    DescribableReader,
    Discard,
    JournalDescription,
    Orphan,
    OrphanSweep,
    Upgrade,
    capability,
)
from journal_manager.journals.election import Election, open_election
from journal_manager.journals.journal_uri import JournalURI, parse_uri
from journal_manager.journals.open_journal import format_journal, has_data, open_reader, open_snapshots, open_writer
from journal_manager.journals.registry import backend_for, installed_backends
from journal_manager.journals.set_rules import Member, MemberState, MemberStatus
from journal_manager.read import read_ops, read_ops_over, read_runs, tail, tail_runs
from journal_manager.replicas.program_state import StateMachine
from journal_manager.replicas.replica import ReplicaRole
from journal_manager.replicas.replica_config import ReplicaConfig
from journal_manager.replicas.replicated_program import ReplicatedProgram, replicated
from journal_manager.replicas.status import ReplicaStatus
from journal_manager.snapshots.checkpoints import CheckpointPolicy
from journal_manager.snapshots.retention import RetentionPlan, RetentionPolicy, plan_retention
from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo, SnapshotStore, restore_newest
from journal_manager.write import EditLog, EditLogConfig, JournalFigures, JournalStats, MeasuredWriter

__all__ = [
    "FIRST_TXID",
    "NOTHING",
    "UNKNOWN_EPOCH",
    "Backend",
    "Batch",
    "CheckpointPolicy",
    "Chunks",
    "DescribableReader",
    "Discard",
    "DiscardedEdits",
    "EditLog",
    "EditLogConfig",
    "EditRun",
    "EditsDiscardedError",
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
    "JournalFullError",
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
    "ReplicatedProgram",
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
    "read_runs",
    "replicated",
    "restore_newest",
    "tail",
    "tail_runs",
]
