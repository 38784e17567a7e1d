"""A journal: what it promises, how it is found by its address and opened, and rules that several stores share.

backend        the contract of a journal, which keeps an edit log's segments
capabilities   what some backends can do besides
journal_uri    an address, taken apart (pure)
registry       finds the backend of an address, by entry points
open_journal   opens a journal by its address
election       who of several replicas may be its active writer
chain          a journal's node: who may write, and its segments in order (pure)
set_rules      which members of a journal set must work, and which may fail (pure)

The stores themselves are :mod:`journal_manager.backends`; nothing here knows them.
"""

from journal_manager.journals.backend import (
    Backend,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    Options,
    RecoveryReport,
    SegmentWriter,
)
from journal_manager.journals.capabilities import (
    CopySource,
    CopyTracking,
    DescribableReader,
    Discard,
    JournalDescription,
    Orphan,
    OrphanSweep,
    Upgrade,
    capability,
)
from journal_manager.journals.chain import Chain, described, ensure_joins, ensure_not_discarded, purgeable
from journal_manager.journals.election import ElectableBackend, Election, LockElection, TryLock, open_election
from journal_manager.journals.journal_uri import JournalURI, parse_uri
from journal_manager.journals.open_journal import format_journal, has_data, open_reader, open_snapshots, open_writer
from journal_manager.journals.registry import backend_for, installed_backends, parse_options
from journal_manager.journals.set_rules import Member, MemberState, MemberStatus, SetRules

__all__ = [
    "Backend",
    "Chain",
    "CopySource",
    "CopyTracking",
    "DescribableReader",
    "Discard",
    "ElectableBackend",
    "Election",
    "JournalDescription",
    "JournalReader",
    "JournalURI",
    "JournalWriter",
    "LockElection",
    "Member",
    "MemberState",
    "MemberStatus",
    "NamespaceInfo",
    "Options",
    "Orphan",
    "OrphanSweep",
    "RecoveryReport",
    "SegmentWriter",
    "SetRules",
    "TryLock",
    "Upgrade",
    "backend_for",
    "capability",
    "described",
    "ensure_joins",
    "ensure_not_discarded",
    "format_journal",
    "has_data",
    "installed_backends",
    "open_election",
    "open_reader",
    "open_snapshots",
    "open_writer",
    "parse_options",
    "parse_uri",
    "purgeable",
]
