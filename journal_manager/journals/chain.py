"""A journal's node: who may write, and its segments in order; the only legal transitions (pure).

Backends that keep one node under compare-and-set (memory, ledgers) share this module. Each step of a writer is one
transition and one compare-and-set, so no step is ever half done.

    claim(owner)               any --> the next epoch
    begin(token, segment)      no segment in progress, joins the last one (C2, C3, C7)
    finish(token, first, last) in progress --> final
    drop(token, first)         in progress and without an edit --> removed
    purge(token, min)          a prefix of final segments --> removed; the newest stays (C6)
    discard(token, first)      the segments from first on --> removed; the oldest stays
    begin_upgrade(token, to)   another namespace version; what is there now can be gone back to
    finalize_upgrade(token)    no way back
    roll_back(token)           segments since begin_upgrade --> removed; the former namespace version
    cleared(token, namespace)  all segments --> removed
    copied(token, copy)        its edits are those of another journal

What discard, roll_back and cleared remove is noted in ``discarded`` by the same write. So it is gone at once, whatever
becomes of its files and ledgers, and nobody can take it for the edits that get the same ids later.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Final

from journal_manager.edits.discarded_edits import NOTHING_DISCARDED, Cut, DiscardedEdits
from journal_manager.edits.fencing import require_current
from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import (
    JournalCorruptionError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
    UnsupportedLayoutError,
    UpgradeError,
    check,
)
from journal_manager.fencing_token import FencingToken
from journal_manager.journals.backend import NamespaceInfo
from journal_manager.journals.capabilities import CopySource, JournalDescription
from journal_manager.txid import FIRST_TXID, NOTHING, TxId, is_txid

FORMAT: Final = 4
"""Written where the node keeps the password of the journal's ledgers: programs that do not look for it there could
open none of them, and must not claim the journal."""

DISCARD_FORMAT: Final = 3
"""Written once edits were discarded, and by a copy of such a journal: programs that compare ids alone must not read
it."""

UPGRADE_FORMAT: Final = 2
"""Written only while an upgrade is in progress: programs that do not know of it must not write then."""

PLAIN_FORMAT: Final = 1
UNCLAIMED: Final = FencingToken(0, "")

_OF_A_SEGMENT: Final = tuple(each.name for each in fields(SegmentInfo))
"""All of them numbers, texts or None: a node may name thousands of segments, and ``asdict`` copies deeply."""


@dataclass(frozen=True, slots=True)
class UpgradePoint:
    """What an upgrade that is in progress can be rolled back to."""

    namespace: NamespaceInfo
    last_txid: TxId
    """The last edit from before the upgrade; NOTHING if there was none."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The record. Every method returns the next record, and raises JournalFencedError for an overtaken token."""

    namespace: NamespaceInfo
    token: FencingToken = UNCLAIMED
    segments: tuple[SegmentInfo, ...] = ()
    nonce: str = ""
    """A number that tells apart two claims of one epoch, also by owners of the same name."""
    upgrade: UpgradePoint | None = None
    """None unless an upgrade is in progress."""
    discarded: DiscardedEdits = NOTHING_DISCARDED
    copy: CopySource | None = None
    password: bytes = field(default=b"", repr=False)
    """Of the ledgers of a journal on ledgers; empty if its users keep it, and in journals of earlier versions."""

    @property
    def epoch(self) -> int:
        """The epoch of the owner."""
        return self.token.epoch

    @property
    def last_txid(self) -> TxId:
        """The last edit of the last final segment."""
        ends = [segment.last for segment in self.segments if segment.last is not None]
        return ends[-1] if ends else NOTHING

    @property
    def open_segment(self) -> SegmentInfo | None:
        """The segment in progress, if there is one."""
        return self.segments[-1] if self.segments and self.segments[-1].in_progress else None

    def claim(self, owner: str, nonce: str = "") -> Chain:
        """Claim the next epoch for ``owner``."""
        return replace(self, token=FencingToken(self.token.epoch + 1, owner), nonce=nonce)

    def cleared(self, token: FencingToken, namespace: NamespaceInfo) -> Chain:
        """Remove all segments, and take the identity of another namespace."""
        require_current(token, self.token)
        cleared = replace(self, namespace=namespace, segments=(), upgrade=None, copy=None)
        return cleared._without(FIRST_TXID) if token.epoch > 1 else cleared  # 1: nobody else has had the journal

    def begin(self, token: FencingToken, segment: SegmentInfo) -> Chain:
        """Append a segment in progress.

        Raises:
            SegmentExistsError: one is open, or ``segment.first`` is not the id after the last one, or was discarded
            in this epoch.
        """
        require_current(token, self.token)
        if (opened := self.open_segment) is not None:
            raise SegmentExistsError(f"segment {opened} is in progress: finish it before a new one begins")
        ensure_joins(self.last_txid, segment.first)
        ensure_not_discarded(self.discarded, segment.first, segment.epoch)
        return replace(self, segments=(*self.segments, segment))._checked()

    def finish(self, token: FencingToken, first: TxId, last: TxId) -> Chain:
        """Fix the end of the segment that begins at ``first``. The same end again is no change.

        Raises:
            SegmentNotFoundError: no segment begins at ``first``. SegmentMismatchError: it has another end.
        """
        require_current(token, self.token)
        segment = self.find(first)
        final = segment.finalized(last)
        return replace(self, segments=tuple(final if s is segment else s for s in self.segments))._checked()

    def drop(self, token: FencingToken, first: TxId) -> Chain:
        """Take the segment in progress out; its ids are free again.

        Raises:
            SegmentNotFoundError: none is in progress at ``first``.
        """
        require_current(token, self.token)
        if self.open_segment is None or self.open_segment.first != first:
            raise SegmentNotFoundError(f"no segment in progress begins at {first}")
        return replace(self, segments=self.segments[:-1])

    def purge(self, token: FencingToken, min_txid: TxId) -> tuple[Chain, tuple[SegmentInfo, ...]]:
        """Take out the final segments that end below ``min_txid``, but not the newest segment. While an upgrade is in
        progress everything stays."""
        require_current(token, self.token)
        gone = purgeable(self.segments, min_txid) if self.upgrade is None else ()
        return replace(self, segments=self.segments[len(gone) :]), gone

    def discard(self, token: FencingToken, first: TxId) -> tuple[Chain, tuple[SegmentInfo, ...]]:
        """Take out the segments from ``first`` on. Raises as ``discardable``; UpgradeError: an upgrade is in progress,
        and edits from before it would go."""
        require_current(token, self.token)
        if self.upgrade is not None and first <= self.upgrade.last_txid:
            raise UpgradeError(f"edit {first} is from before the upgrade that is in progress, and stays until its end")
        gone = discardable(self.segments, first)
        return (self._without(gone[0].first) if gone else self), gone

    def begin_upgrade(self, token: FencingToken, namespace: NamespaceInfo) -> Chain:
        """Take the new version of the namespace, and remember the present state. The same again is no change.

        Raises:
            NamespaceMismatchError: it is another namespace. UpgradeError: another upgrade is in progress, a segment is
            open, or the layout would be older.
        """
        require_current(token, self.token)
        namespace.ensure_same(self.namespace)
        if self.upgrade is not None and namespace == self.namespace and self.upgrade.last_txid == self.last_txid:
            return self
        if self.upgrade is not None:
            raise UpgradeError("an upgrade is in progress: finalize it or roll it back first")
        if self.open_segment is not None:
            raise UpgradeError(f"segment {self.open_segment} is in progress: finish it before the upgrade begins")
        if namespace.layout_version < self.namespace.layout_version:
            raise UpgradeError(
                f"the journal has layout {self.namespace.layout_version}: an upgrade to layout "
                f"{namespace.layout_version} would be a step back"
            )
        return replace(self, namespace=namespace, upgrade=UpgradePoint(self.namespace, self.last_txid))

    def needs_snapshot(self, at: TxId) -> bool:
        """Whether a snapshot is needed for rolling an upgrade back."""
        return self.upgrade is not None and at <= self.upgrade.last_txid

    def ensure_rollback_possible(self, at: TxId) -> None:
        """A snapshot may be kept at ``at``: it takes no place of one that rolling an upgrade back comes to.

        Raises:
            UpgradeError: it would be the newest one then, in the new version's form.
        """
        if self.needs_snapshot(at):
            raise UpgradeError(
                f"edit {at} is from before the upgrade that is in progress, and its snapshots stay as they were: keep "
                "one after a later edit, or finalize the upgrade first"
            )

    def finalize_upgrade(self, token: FencingToken) -> Chain:
        """End the upgrade for good. Without one it is no change."""
        require_current(token, self.token)
        return replace(self, upgrade=None)

    def roll_back(self, token: FencingToken) -> tuple[Chain, tuple[SegmentInfo, ...]]:
        """Take out the segments since the upgrade began, and go back to the former version of the namespace.

        Raises:
            UpgradeError: no upgrade is in progress, or a segment is open.
        """
        require_current(token, self.token)
        if self.upgrade is None:
            raise UpgradeError("no upgrade is in progress: there is nothing to roll back to")
        if self.open_segment is not None:
            raise UpgradeError(
                f"segment {self.open_segment} is in progress: finish it before the upgrade is rolled back"
            )
        point = self.upgrade
        gone = tuple(segment for segment in self.segments if segment.first > point.last_txid)
        chain = replace(self, namespace=point.namespace, upgrade=None)
        return (chain._without(gone[0].first) if gone else chain), gone

    def copied(self, token: FencingToken, copy: CopySource) -> Chain:
        """Note that every edit is one of another journal. The same again is no change."""
        require_current(token, self.token)
        return replace(self, copy=copy)

    def _without(self, first: TxId) -> Chain:
        """The segments from ``first`` on are gone, and their ids are used by later epochs only."""
        return replace(
            self,
            segments=tuple(segment for segment in self.segments if segment.first < first),
            discarded=self.discarded.adding(first, self.epoch, self.nonce),
        )

    def find(self, first: TxId) -> SegmentInfo:
        """The segment that begins at ``first``.

        Raises:
            SegmentNotFoundError: there is none.
        """
        for segment in self.segments:
            if segment.first == first:
                return segment
        raise SegmentNotFoundError(f"no segment begins at {first}")

    def _checked(self) -> Chain:
        for one, two in zip(self.segments, self.segments[1:], strict=False):
            check(one.last is not None, "C3", f"segment {one} is not final, but segment {two} follows it")
            check(one.last == two.first - 1, "C7", f"segment {two} does not begin where segment {one} ends")
        return self

    def encode(self) -> bytes:
        """Encode the node as JSON, for people and other versions."""
        value: dict[str, object] = {
            "format": self._format(),
            "namespace": asdict(self.namespace),
            "token": asdict(self.token),
            "nonce": self.nonce,
            "segments": [{name: getattr(segment, name) for name in _OF_A_SEGMENT} for segment in self.segments],
        }
        if self.upgrade is not None:
            value["upgrade"] = asdict(self.upgrade)
        if self.discarded:
            value["taken_back"] = [[cut.first, cut.epoch] for cut in self.discarded.cuts]
            value["identity"] = self.discarded.journal
        if self.copy is not None:
            value["copy_of"] = asdict(self.copy)
        if self.password:
            value["password"] = self.password.hex()
        return json.dumps(value, separators=(",", ":")).encode()

    def _format(self) -> int:
        if self.password:
            return FORMAT
        if self.discarded or self.copy is not None:
            return DISCARD_FORMAT
        return PLAIN_FORMAT if self.upgrade is None else UPGRADE_FORMAT

    @classmethod
    def decode(cls, data: bytes) -> Chain:
        """Read a node.

        Raises:
            UnsupportedLayoutError: a newer format. JournalCorruptionError: no node, or one that breaks a rule.
        """
        try:
            value = json.loads(data)
            if value["format"] > FORMAT:
                raise UnsupportedLayoutError(
                    f"the journal's node has format {value['format']}, and this program reads formats up to {FORMAT}"
                )
            segments = tuple(SegmentInfo(**segment) for segment in value["segments"])
            namespace, token = NamespaceInfo(**value["namespace"]), FencingToken(**value["token"])
            upgrade, copy = None, None
            if value["format"] == UPGRADE_FORMAT or "upgrade" in value:
                point = value["upgrade"]
                upgrade = UpgradePoint(NamespaceInfo(**point["namespace"]), point["last_txid"])
            if "copy_of" in value:
                copy = CopySource(**value["copy_of"])
            cuts = tuple(Cut(first, epoch) for first, epoch in value.get("taken_back", ()))
            discarded = DiscardedEdits(cuts, value["identity"] if cuts else "")
            password = bytes.fromhex(value["password"]) if value["format"] == FORMAT else b""
            return cls(namespace, token, segments, value["nonce"], upgrade, discarded, copy, password)._checked()
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise JournalCorruptionError(f"this is no journal's node: {data[:80].decode(errors='replace')}") from error


def ensure_joins(last: TxId, first: TxId) -> None:
    """A segment may begin at ``first`` after edit ``last`` (NOTHING: any id may be the first).

    Raises:
        SegmentExistsError: ids would be used twice or left out (C7).
    """
    if not is_txid(first):
        raise SegmentExistsError(f"no segment begins at {first}")
    if last != NOTHING and first != last + 1:
        raise SegmentExistsError(f"the next segment begins at {last + 1}, not at {first}")


def ensure_not_discarded(discarded: DiscardedEdits, first: TxId, epoch: int) -> None:
    """A segment of this epoch may begin at ``first``.

    Raises:
        SegmentExistsError: this epoch had an edit with that id, and discarded it.
    """
    if discarded.covers(first, epoch):
        raise SegmentExistsError(
            f"edit {first} was discarded by this writer, and no two edits may have one id in one epoch: open the "
            "journal anew to write"
        )


def purgeable(segments: tuple[SegmentInfo, ...], min_txid: TxId) -> tuple[SegmentInfo, ...]:
    """The oldest segments that may be purged: final, wholly below ``min_txid``, and not the newest segment."""
    count = 0
    for segment in segments[:-1]:
        if segment.last is None or segment.last >= min_txid:
            break
        count += 1
    return segments[:count]


def discardable(segments: tuple[SegmentInfo, ...], first: TxId) -> tuple[SegmentInfo, ...]:
    """The segments from ``first`` on, if they may be discarded.

    Raises:
        SegmentExistsError: one is in progress. SegmentMismatchError: ``first`` is inside one, or none would be left.
    """
    if segments and segments[-1].in_progress:
        raise SegmentExistsError(f"segment {segments[-1]} is in progress: finish it before edits are discarded")
    for segment in segments:
        if segment.last is not None and segment.first < first <= segment.last:
            raise SegmentMismatchError(f"edit {first} is inside segment {segment}: only whole segments are discarded")
    gone = tuple(segment for segment in segments if segment.first >= first)
    if gone and len(gone) == len(segments):
        raise SegmentMismatchError(f"no edit would be left before edit {first}: format the journal instead")
    return gone


def described(chain: Chain) -> JournalDescription:
    """What a journal's node says about it."""
    return JournalDescription(
        chain.namespace,
        chain.token,
        None if chain.upgrade is None else chain.upgrade.last_txid,
        chain.discarded,
        chain.copy,
    )
