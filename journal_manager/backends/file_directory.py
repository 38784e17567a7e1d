"""A journal in one directory: its blocking steps.

    journal.json                 namespace, epoch and owner; replaced as a whole
    journal.lock                 held during a claim, start, finalize, purge: never while appending
    edits_inprogress_<first>     the segment being written
    edits_<first>-<last>         final segments
    snapshot_<at>                snapshots
    offered_<at>                 snapshots that a reader has offered, and the owner has not adopted yet
    offered_<at>.<epoch>         the same, once edits were discarded

Fencing without a lock around appends: a claim makes the new epoch durable *before* it reads the open segment;
an append reads the epoch *after* its record is durable, and is acknowledged only if the epoch is still its own.
So every acknowledged edit was in the file before the claim read it. Recovery copies the open segment, so what
a paused writer adds to the old file later has no effect.

The directory is the list of segments and snapshots, without those that the record says were discarded: they are gone
from that write on, and their files are removed after it. A name may then be used again, so whatever is known by a name
is known by the record's epochs, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from bookkeeper.real import SystemRng
from bookkeeper.seams import Rng
from journal_manager.backends import file_format as form
from journal_manager.backends.files import Files, OpenFile
from journal_manager.edits import (
    NOTHING,
    Batch,
    DiscardedEdits,
    FencingToken,
    SegmentInfo,
    TxId,
    fenced,
    in_order,
    require_current,
)
from journal_manager.errors import (
    JournalCorruptionError,
    JournalDiskError,
    JournalExistsError,
    JournalLockedError,
    JournalNotFormattedError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
)
from journal_manager.journals.backend import NamespaceInfo, RecoveryReport
from journal_manager.journals.capabilities import CopySource
from journal_manager.journals.chain import Chain, ensure_joins, ensure_not_discarded, purgeable

STATE: Final = "journal.json"
LOCK: Final = "journal.lock"
_CONTENT: Final = ("edits_", "snapshot_", "offered_")
_LOCK_POLL_S: Final = 0.01


class JournalDirectory:
    """The journal in one directory. Several threads and processes may use it at once."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        lock_timeout_s: float,
        sleep: Callable[[float], None] = time.sleep,
        rng: Rng | None = None,
    ) -> None:
        self.files = files
        self.directory = directory
        self._lock_timeout_s = lock_timeout_s
        self._sleep = sleep
        self._rng = rng or SystemRng()
        self._nonce = ""
        """Tells the claim that was made here from another one of the same epoch, in a directory that was made anew."""
        self._headers: dict[str, form.SegmentHeader] = {}
        """The headers of final segments. They never change, unless edits are discarded: then names are used again."""
        self._headers_since = DiscardedEdits()
        """What had been discarded when they were read."""

    # -- the record ------------------------------------------------------------------------------------

    def state(self) -> Chain:
        """Read namespace and epoch. The record's list of segments is empty, because the directory is the list.

        Raises:
            JournalNotFormattedError: there is no journal.
        """
        try:
            return Chain.decode(self.files.read_file(self.path(STATE)))
        except FileNotFoundError as error:
            raise JournalNotFormattedError(f"there is no journal in {self.directory}") from error

    def create_if_absent(self, namespace: NamespaceInfo) -> None:
        """Make an empty journal if there is none."""
        self.files.make_directories(self.directory)
        with self._locked():
            if not self.files.exists(self.path(STATE)):
                self._write_state(Chain(namespace))

    def format(self, namespace: NamespaceInfo, *, force: bool) -> None:
        """Make an empty journal. Raises JournalExistsError."""
        self.create_if_absent(namespace)
        with self._locked():
            if not force and self.has_data():
                raise JournalExistsError(f"there are edits in {self.directory}: formatting it would remove them")
            state = self.state().claim("format", self._new_nonce())
            self._write_state(state.cleared(state.token, namespace))  # fences a writer before anything is removed
            for name in self.files.list(self.directory):
                if name.startswith(_CONTENT):
                    self._unlink(name)

    def has_data(self) -> bool:
        """Whether there are segments or snapshots."""
        if not self.files.exists(self.directory):
            return False
        return any(name.startswith(_CONTENT) for name in self.files.list(self.directory))

    def claim(self, owner: str, namespace: NamespaceInfo | None) -> RecoveryReport:
        """Take the next epoch and recover (C8)."""
        self.state()
        with self._locked():
            state = self.state()
            if namespace is not None:
                namespace.ensure_same(state.namespace)
            state = state.claim(owner, self._new_nonce())
            self._write_state(state)
            self._nonce = state.nonce
            return self._recover(state.token)

    def _new_nonce(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def ensure_current(self, token: FencingToken) -> None:
        """Check that the newest claim is still the one that was made here. Raises JournalFencedError."""
        state = self.state()
        require_current(token, state.token)
        if state.nonce != self._nonce:
            raise fenced(token, state.token)

    # -- segments --------------------------------------------------------------------------------------

    def segments(self) -> tuple[SegmentInfo, ...]:
        """List the segments of the directory, without files that vanish meanwhile, never got a header, or were taken
        back."""
        while True:
            found = [self._info(name) for name in self.files.list(self.directory) if form.parse_name(name) is not None]
            discarded = self.state().discarded
            if discarded == self._headers_since:
                return in_order(info for info in found if info is not None and not _is_gone(info, discarded))
            self._headers_since = discarded  # a name may be another file's now
            self._headers.clear()

    def _info(self, name: str) -> SegmentInfo | None:
        ends = form.parse_name(name)
        assert ends is not None
        first, last = ends
        try:
            header = self._headers.get(name) or self._read_header(name)
        except JournalCorruptionError:
            return SegmentInfo(first, last, 0, 0, name)  # a read will report what is wrong
        except FileNotFoundError:
            return None
        if header is None:
            return None if last is None else SegmentInfo(first, last, 0, 0, name)
        if last is not None:
            self._headers[name] = header
        return SegmentInfo(first, last, header.layout_version, header.epoch, name)

    def _read_header(self, name: str) -> form.SegmentHeader | None:
        file = self.files.open(self.path(name), write=False)
        try:
            return form.decode_header(file.pread(form.HEADER_BYTES + 1, 0), name)
        finally:
            file.close()

    def start(self, token: FencingToken, first: TxId, layout_version: int) -> tuple[SegmentInfo, OpenFile]:
        """Begin a segment (K1): header, sync, directory sync, and only then the first record."""
        with self._owned(token):
            segments = self.segments()
            if segments and segments[-1].last is None:
                raise SegmentExistsError(f"segment {segments[-1]} is in progress: finish it before a new one begins")
            ensure_joins(_last_of(segments), first)
            ensure_not_discarded(self._headers_since, first, token.epoch)
            name = form.in_progress_name(first)
            if self.files.exists(self.path(name)):  # left by an attempt that failed before its header was durable
                self._unlink(name)
            file = self.files.open(self.path(name), create=True)
            try:
                file.pwrite(form.encode_header(form.SegmentHeader(layout_version, token.epoch, first)), 0)
                file.sync()
                self.files.sync_directory(self.directory)
            except BaseException:
                file.close()
                raise
            return SegmentInfo(first, None, layout_version, token.epoch, name), file

    def finalize(self, token: FencingToken, info: SegmentInfo, end: int, last: TxId) -> SegmentInfo:
        """Give the open segment, whose records end at offset ``end``, its final name.

        Raises:
            JournalDiskError: there is more behind ``end``. Readers may have delivered that, so it is not cut off (J6).
        """
        with self._owned(token):
            file = self.files.open(self.path(info.location), write=False)
            try:
                if file.size() != end:
                    raise unknown_end(info)
            finally:
                file.close()
            final = replace(info.finalized(last), location=form.final_name(info.first, last))
            self.files.rename(self.path(info.location), self.path(final.location))
            self.files.sync_directory(self.directory)
            return final

    def find(self, first: TxId) -> SegmentInfo:
        """Find a segment. Raises SegmentNotFoundError."""
        for segment in self.segments():
            if segment.first == first:
                return segment
        raise SegmentNotFoundError(f"no segment begins at {first}")

    def discard(self, token: FencingToken, info: SegmentInfo) -> None:
        """Remove the open segment if it has no edits."""
        with self._owned(token):
            if form.scan(self.files.read_file(self.path(info.location)), form.HEADER_BYTES).batches:
                raise SegmentMismatchError(f"segment {info} has edits, and is not removed")
            self._unlink(info.location)

    def purge(self, token: FencingToken, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        """Remove final segments, oldest first: after a crash the rest is still a run without gaps."""
        with self._owned(token):
            gone = purgeable(self.segments(), min_txid) if self.state().upgrade is None else ()
            for segment in gone:
                self._unlink(segment.location)
                self._headers.pop(segment.location, None)
            return gone

    def discard_from(self, token: FencingToken, first: TxId) -> tuple[SegmentInfo, ...]:
        """As ``Chain.discard``. The record first; a crash leaves files that are not listed, and the next claim removes
        them."""
        with self._owned(token):
            chain, gone = self._chain().discard(token, first)
            if gone:
                self._write_state(replace(chain, segments=()))
            self._remove_gone()
            return gone

    def note_copy(self, token: FencingToken, copy: CopySource) -> None:
        """As ``Chain.copied``."""
        with self._owned(token):
            if (state := self.state()).copy != copy:
                self._write_state(state.copied(token, copy))

    # -- upgrade ---------------------------------------------------------------------------------------

    def begin_upgrade(self, token: FencingToken, namespace: NamespaceInfo) -> None:
        """As ``Chain.begin_upgrade``."""
        with self._owned(token):
            self._write_state(replace(self._chain().begin_upgrade(token, namespace), segments=()))

    def finalize_upgrade(self, token: FencingToken) -> None:
        """As ``Chain.finalize_upgrade``."""
        with self._owned(token):
            self._write_state(self.state().finalize_upgrade(token))

    def roll_back(self, token: FencingToken) -> tuple[SegmentInfo, ...]:
        """As ``Chain.roll_back``. The record first, as in ``discard_from``."""
        with self._owned(token):
            chain, gone = self._chain().roll_back(token)
            self._write_state(replace(chain, segments=()))
            self._remove_gone()
            return gone

    def _chain(self) -> Chain:
        """The record with the segments that the directory lists."""
        return replace(self.state(), segments=self.segments())

    def _remove_gone(self) -> None:
        """Remove the files of segments that were discarded."""
        discarded = self.state().discarded
        for name in [name for name in self.files.list(self.directory) if discarded and form.parse_name(name)]:
            if (info := self._info(name)) is not None and _is_gone(info, discarded):
                self._unlink(name)
                self._headers.pop(name, None)

    # -- recovery --------------------------------------------------------------------------------------

    def _recover(self, token: FencingToken) -> RecoveryReport:
        finalized: list[SegmentInfo] = []
        removed: list[SegmentInfo] = []
        self._remove_gone()
        names = self.files.list(self.directory)
        for name in [name for name in names if name.endswith(".tmp")]:
            self._unlink(name)
        done = {ends[0] for name in names if (ends := form.parse_name(name)) and ends[1] is not None}
        for name in names:
            ends = form.parse_name(name)
            if ends is None or ends[1] is not None:
                continue
            if ends[0] in done:  # an earlier recovery stopped between its last two steps
                self._unlink(name)
                continue
            info, final = self._recover_segment(name)
            (removed if final is None else finalized).append(final or info)
        return RecoveryReport(token, tuple(finalized), tuple(removed), _last_of(self.segments()))

    def _recover_segment(self, name: str) -> tuple[SegmentInfo, SegmentInfo | None]:
        """Copy the whole records into the final file, then remove the file in progress (K3)."""
        data = self.files.read_file(self.path(name))
        header = form.decode_header(data, name)
        ends = form.parse_name(name)
        assert ends is not None
        layout, epoch = (header.layout_version, header.epoch) if header else (0, 0)
        info = SegmentInfo(ends[0], None, layout, epoch, name)
        found = form.scan(data, form.HEADER_BYTES) if header else form.SegmentScan((), ())
        if not found.batches and form.record_after(data, form.HEADER_BYTES) is None:
            self._unlink(name)
            return info, None
        used = found.used or form.HEADER_BYTES
        after = found.batches[-1].last + 1 if found.batches else info.first
        if (later := form.record_after(data, used)) is not None:
            raise JournalCorruptionError(
                (
                    f"{self.path(name)} is damaged at offset {used}: edit {after} was durable and cannot be "
                    f"read, and edit {later.first} follows"
                ),
                first_missing=TxId(after),
                location=name,
            )
        final = replace(info.finalized(found.batches[-1].last), location=form.final_name(info.first, TxId(after - 1)))
        self._replace(final.location, data[:used])
        self._unlink(name)
        return info, final

    # -- files -----------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def new_temporary(self, name: str) -> tuple[str, OpenFile]:
        """Make a temporary file that nobody else writes to. A claim removes what is left of such files."""
        number = 0
        while True:
            temporary = f"{name}.{number}.tmp"
            try:
                return temporary, self.files.open(self.path(temporary), create=True)
            except FileExistsError:
                number += 1

    def rename(self, source: str, target: str) -> None:
        """Give a file that was synced its name, or replace the one that has it; durable when this returns."""
        self.files.rename(self.path(source), self.path(target))
        self.files.sync_directory(self.directory)

    def rename_as_owner(self, token: FencingToken, source: str, target: str) -> None:
        """As ``rename``, if the epoch is still the token's. Raises JournalFencedError."""
        with self._owned(token):
            self.rename(source, target)

    def remove_as_owner(self, token: FencingToken, name: str) -> None:
        """Remove a file, if it is there and the epoch is still the token's. Raises JournalFencedError."""
        with self._owned(token):
            self.remove_if_there(name)

    def remove_if_there(self, name: str) -> None:
        """Remove a file. It is no error if there is none."""
        if self.files.exists(self.path(name)):
            self._unlink(name)

    def _write_state(self, state: Chain) -> None:
        self._replace(STATE, state.encode())

    def _replace(self, name: str, content: bytes) -> None:
        """Make or replace a whole file (K2)."""
        temporary = f"{name}.tmp"
        if self.files.exists(self.path(temporary)):
            self.files.unlink(self.path(temporary))
        file = self.files.open(self.path(temporary), create=True)
        try:
            file.pwrite(content, 0)
            file.sync()
        finally:
            file.close()
        self.files.rename(self.path(temporary), self.path(name))
        self.files.sync_directory(self.directory)

    def _unlink(self, name: str) -> None:
        self.files.unlink(self.path(name))
        self.files.sync_directory(self.directory)

    @contextmanager
    def _owned(self, token: FencingToken) -> Iterator[None]:
        """The lock, while the newest claim is the token's. Raises: as ``ensure_current``."""
        with self._locked():
            self.ensure_current(token)
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        waited = 0.0
        while True:
            try:
                lock = self.files.lock(self.path(LOCK))
                break
            except BlockingIOError as error:
                if waited >= self._lock_timeout_s:
                    raise JournalLockedError(
                        f"another process is changing the journal in {self.directory} and holds {LOCK}: try again"
                    ) from error
                self._sleep(_LOCK_POLL_S)
                waited += _LOCK_POLL_S
        try:
            yield
        finally:
            lock.release()


def _is_gone(info: SegmentInfo, discarded: DiscardedEdits) -> bool:
    """Whether a segment was discarded. One whose header is damaged (epoch 0) is not: reading it says what is wrong."""
    return info.epoch > 0 and discarded.covers(info.first, info.epoch)


def unknown_end(info: SegmentInfo) -> JournalDiskError:
    return JournalDiskError(
        f"an append to segment {info} ({info.location}) failed, so nobody knows where it ends, and a reader may have "
        "seen the edits that failed: open the journal anew, which finds out"
    )


def _last_of(segments: tuple[SegmentInfo, ...]) -> TxId:
    ends = [segment.last for segment in segments if segment.last is not None]
    return ends[-1] if ends else NOTHING


class SegmentFile:
    """The open segment of a writer. It appends records one after the other."""

    def __init__(self, place: JournalDirectory, token: FencingToken, info: SegmentInfo, file: OpenFile) -> None:
        self._place, self._token, self._file = place, token, file
        self.info = info
        self.end = form.HEADER_BYTES
        """Where the durable records end."""
        self.last = TxId(info.first - 1)
        """The last durable edit."""
        self.failed = False
        """Whether an append has failed, so that what is behind ``end`` is unknown."""

    def append(self, batch: Batch) -> None:
        """Write one record; durable, and the epoch still ours, when this returns.

        Raises:
            SegmentMismatchError: the ids do not follow. JournalFencedError. OSError: the segment has failed for good
            (K23).
        """
        if self.failed or batch.first != self.last + 1:
            raise SegmentMismatchError(
                f"segment {self.info} has failed, or edit {batch.first} does not follow edit {self.last}"
            )
        self.failed = True
        record = form.encode_record(batch)
        self._file.pwrite(record, self.end)
        self._file.sync()
        self._place.ensure_current(self._token)
        self.failed = False
        self.end += len(record)
        self.last = batch.last

    def close(self) -> None:
        self._file.close()
