"""The interface of a metadata store: versioned values under paths.

Every implementation gives these guarantees; tests/contracts/metadata_store.py checks them:

* **M1** A write names the version it replaces. If that is no longer the present one, it changes nothing and raises
  :exc:`MetadataConflictError`. A created value has version 0, each write adds one.
* After a write returned, every later read of its own session sees it or a newer one. Reads of other sessions do so
  after :meth:`MetadataStore.sync` (Z6).
* An ephemeral value goes when the session that made it ends, not before.
* **M8, Z4** A write is sent once. If its reply is lost it raises :exc:`MetadataUnavailableError`, and if its session
  ends meanwhile :exc:`SessionExpiredError`: it may have been done (:data:`OUTCOME_UNKNOWN`). :func:`settled_set`,
  :func:`settled_create` and :func:`settled_delete` read again and compare; every writer uses them.
* **Z3, Z5** A watch stays until it is closed. Its callback takes no value and means "re-read": it comes after every
  change since the watch was asked for, may come without a change, and comes when the session was in doubt.
  It runs on the loop's thread, never inside a call of the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, NewType, Protocol, TypeVar

from bookkeeper.errors import (
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
    SessionExpiredError,
)

Version = NewType("Version", int)
"""Counts the writes of one value from 0, as ZooKeeper does."""

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E", bound=MetadataError)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A value, and the version that a write must name to replace it."""

    value: T
    version: Version
    created_ms: int = field(default=0, compare=False)
    """When the value was created, by the store's wall clock, in milliseconds since 1970. For people only."""
    transaction: int = field(default=0, compare=False)
    """Store-wide number of the write that made this version (ZooKeeper: mzxid). Only grows (M10)."""
    created_txn: int = field(default=0, compare=False)
    """Store-wide number of the write that created the value (ZooKeeper: czxid). Versions begin again when a value is
    deleted and created anew; this number does not. 0: not known."""

    def over(self, value: U) -> Versioned[U]:
        """The same version of what the value means."""
        return Versioned(value, self.version, self.created_ms, self.transaction, self.created_txn)


class SessionState(Enum):
    """The state of the session with the store, which says how much this process may believe (Z1)."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """There is no contact, and the session may have ended already. Act as if it had."""
    LOST = "lost"
    """The session has ended, with its ephemeral values. A new session follows by itself; read everything again."""


class Watch(Protocol):
    """A subscription."""

    def close(self) -> None:
        """No callback comes after this. Idempotent."""


class ValueFollower(Protocol):
    """Reads values, and knows which of them were written since: for who keeps many of them, and looks now and then."""

    async def get(self, path: str) -> Versioned[bytes]:
        """As :meth:`MetadataStore.get`."""

    async def changed(self) -> Sequence[str] | None:
        """Which values may have been written since they were read here; None: all of them. Values that were not read
        here may be named, deleted ones may be left out. Each is named once; who reads it again after this call learns
        of the next write. At most one request."""

    def close(self) -> None:
        """Follow nothing any more. Idempotent."""


@dataclass(frozen=True, slots=True)
class Create:
    """Part of a multi: create a value that must not exist."""

    path: str
    value: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Part of a multi: replace a value; ``expected`` None replaces any version."""

    path: str
    value: bytes
    expected: Version | None


@dataclass(frozen=True, slots=True)
class Delete:
    """Part of a multi: delete a value; ``expected`` None deletes any version."""

    path: str
    expected: Version | None


@dataclass(frozen=True, slots=True)
class Check:
    """Part of a multi: the value must exist in this version (None: in any)."""

    path: str
    expected: Version | None


Operation = Create | Set | Delete | Check


class MetadataStore(Protocol):
    """One session with a metadata service. Paths are absolute: ``/ledgers/LAYOUT``.

    Every method raises MetadataUnavailableError if the service does not answer in time (reads wait for a
    reconnection and are repeated; writes are sent once), SessionExpiredError if the session ended under the
    call, and ClientClosedError after :meth:`close`.
    """

    @property
    def session(self) -> SessionState: ...

    @property
    def session_id(self) -> int:
        """The session's id, which changes after a loss; 0 before the first session."""

    @property
    def last_transaction(self) -> int:
        """The highest store-wide transaction number that this store object has seen (Z14, M10)."""

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        """The error, once this store has shown an older state than before (M10); from then on it stays. Else None."""

    async def get(self, path: str) -> Versioned[bytes]:
        """Read a value. Raises: NoSuchKeyError."""

    async def exists(self, path: str) -> Version | None: ...

    async def owner(self, path: str) -> int | None:
        """The session that owns an ephemeral value; None if it is not ephemeral. Raises: NoSuchKeyError."""

    async def children(self, path: str) -> list[str]:
        """The names of the children of ``path``, sorted. Raises: NoSuchKeyError."""

    async def create(
        self,
        path: str,
        value: bytes = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        parents: bool = False,
    ) -> tuple[str, Version]:
        """Create a value; ``sequential`` appends ten digits that count the children ever made under the parent.

        Raises:
            KeyExistsError: the value exists already.
            NoSuchKeyError: the parent is missing, and ``parents`` is false.
            MetadataError: the parent is ephemeral.
        """

    async def create_numbered(self, prefix: str, count: int) -> list[str]:
        """Create ``count`` ephemeral values without content, all or none, each with the parent's next number behind
        ``prefix``. Returns their paths, in the order of their numbers, which need not follow each other.

        Raises:
            NoSuchKeyError: the parent is missing.
        """

    async def set(self, path: str, value: bytes, expected: Version | None, *, created_txn: int = 0) -> Version:
        """Replace a value. With ``created_txn`` only if that write created it.

        ZooKeeper cannot compare that within a write. There it is read immediately before, after a sync. Somebody could
        still delete the value, create it and write it up to ``expected`` while the two requests are under way; the
        reply shows that, and MetadataError is raised.

        Raises:
            NoSuchKeyError: there is no value, or another write created it.
            MetadataConflictError: the value has another version.
            MetadataError: the value was created anew at the moment of the write, which may have been done.
        """

    async def delete(self, path: str, expected: Version | None) -> None:
        """Delete a value. Raises: NoSuchKeyError, MetadataConflictError, NotEmptyError."""

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        """Perform all operations in order or none. Returns the versions of Create and Set; raises the first failure."""

    async def sync(self, path: str) -> None:
        """Make sure that reads after this call see everything that anybody wrote before it (Z6)."""

    async def check_not_rolled_back(self, transaction: int) -> None:
        """Check that the store shows no older state than ``transaction``, which may be from an earlier process (M10).

        A store does this by itself, with what it has seen, at each new session. Once it has found a rollback, every
        write raises the same error.

        Raises:
            MetadataRolledBackError: the store's newest transaction is below ``transaction``.
        """

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        """Call back when the value at ``path`` is created, replaced or deleted."""

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        """Call back when a child of ``path``, or ``path`` itself, is created or deleted."""

    def follow_values(self) -> ValueFollower:
        """A reader that knows which of its values were written since."""

    def on_session(self, callback: Callable[[SessionState], None]) -> Watch:
        """Call back with each change of :attr:`session`."""

    async def close(self) -> None:
        """End the session, which deletes its ephemeral values. Idempotent."""


# -- deciding a write whose reply was lost ------------------------------------------------------------------

OUTCOME_UNKNOWN: Final = (MetadataUnavailableError, SessionExpiredError)
"""What a write raises that may have been done: no reply came, or the session ended while it was under way. After a sync
a read tells, also in the next session: a session that has ended writes nothing any more."""

LOST_MAX: Final = 10
"""How often in a row a write may get no answer and turn out not to be done, before it fails. ZooKeeper closes the
connection of a client that sends more than ``jute.maxbuffer``. Repeating such a write for ever would cut off every user
of this session."""


def _lost_too_often(path: str, size: int) -> MetadataUnavailableError:
    return MetadataUnavailableError(
        f"{path} was not written: the store gave no answer to {LOST_MAX} writes of {size} bytes; if the store works, "
        "the value is too large for it (ZooKeeper: jute.maxbuffer, by default 1 MiB)"
    )


async def settled_set(
    store: MetadataStore, path: str, value: bytes, expected: Version, *, created_txn: int = 0
) -> Version:
    """Replace a value and know whether it was done (M8).

    After a lost reply the value is read again. If it has the expected version it is written again. If it has the next
    version and our bytes, the write was done. So two writers of equal bytes both succeed; a writer that needs to be the
    only one puts something unique into the value. ``created_txn`` as for ``set``.

    Raises:
        MetadataConflictError, NoSuchKeyError: as ``set``; also if our write was done and replaced since.
        MetadataUnavailableError: it is not known whether the write was done: the store could not be read again, or gave
            no answer ``LOST_MAX`` times.
    """
    for _ in range(LOST_MAX):
        try:
            return await store.set(path, value, expected, created_txn=created_txn)
        except OUTCOME_UNKNOWN:
            if (done := await _settled(store, path, value, expected, created_txn)) is not None:
                return done
    raise _lost_too_often(path, len(value))


async def _settled(
    store: MetadataStore, path: str, value: bytes, expected: Version, created_txn: int
) -> Version | None:
    """The version that a write had made whose reply was lost; None: it was not done."""
    await store.sync(path)
    found = await store.get(path)
    check_creation(path, found.created_txn, created_txn)
    if found.version == expected:
        return None
    if found.version == expected + 1 and found.value == value:
        return found.version
    raise MetadataConflictError(
        f"{path} has version {found.version} after a write over version {expected} whose reply was lost"
    )


async def settled_set_if(
    store: MetadataStore,
    path: str,
    value: bytes,
    expected: Version,
    conditions: Sequence[Check],
    *,
    created_txn: int = 0,
) -> Version:
    """As :func:`settled_set`, in one write that is done only if ``conditions`` hold, too. ``created_txn`` is compared
    right before the write and right after it.

    Raises:
        MetadataConflictError: as settled_set; also if a condition does not hold.
        NoSuchKeyError, MetadataUnavailableError: as settled_set.
        MetadataError: as ``set`` with ``created_txn``.
    """
    for _ in range(LOST_MAX):
        await store.sync(path)
        check_creation(path, (await store.get(path)).created_txn, created_txn)
        try:
            version = (await store.multi([*conditions, Set(path, value, expected)]))[-1]
            assert version is not None
        except NoSuchKeyError as error:
            await store.sync(path)
            check_creation(path, (await store.get(path)).created_txn, created_txn)  # raises if the value itself is gone
            raise MetadataConflictError(
                f"{path} was not written: a value that the write depends on is gone ({error})"
            ) from error
        except OUTCOME_UNKNOWN:
            if (done := await _settled(store, path, value, expected, created_txn)) is not None:
                return done
            continue
        try:
            check_creation(path, (await store.get(path)).created_txn, created_txn)
        except NoSuchKeyError as error:
            raise MetadataError(
                f"{error}; it happened at the moment of a write, which may have changed the new value"
            ) from error
        return version
    raise _lost_too_often(path, len(value))


async def settled_create(store: MetadataStore, path: str, value: bytes, *, parents: bool = False) -> Version:
    """Create a value that is unique to its creator, and know whether it was done (M5, M8).

    Raises:
        KeyExistsError: another client's value exists.
        MetadataUnavailableError: it is not known whether the value was created: the store could not be read again, or
            gave no answer ``LOST_MAX`` times.
    """
    for _ in range(LOST_MAX):
        try:
            return (await store.create(path, value, parents=parents))[1]
        except OUTCOME_UNKNOWN:
            await store.sync(path)
            if await store.exists(path) is None:
                continue
        except KeyExistsError:
            pass
        try:
            found = await store.get(path)
        except NoSuchKeyError:
            continue
        if found.value != value:
            raise KeyExistsError(f"{path} exists already, with another client's value")
        return found.version
    raise _lost_too_often(path, len(value))


async def settled_delete(store: MetadataStore, path: str, expected: Version | None, *, created_txn: int = 0) -> None:
    """Delete a value and know whether it is gone (M8). If it is gone after a lost reply, it counts as deleted; so it
    does if somebody has created another one since, which stays.

    ``created_txn``: only the value that this write created; 0: the one that is there. No store compares that in a
    deletion: it is read right before each attempt.

    Raises:
        MetadataConflictError, NotEmptyError: as ``delete``.
        NoSuchKeyError: there is no value, or another write created it.
        MetadataUnavailableError: it is not known whether the value is gone: the store could not be read again, or gave
            no answer ``LOST_MAX`` times.
    """
    await store.sync(path)
    found = await store.get(path)
    check_creation(path, found.created_txn, created_txn)
    created_txn, unsure = found.created_txn, False
    for _ in range(LOST_MAX):
        try:
            return await store.delete(path, found.version if unsure and expected is None else expected)
        except OUTCOME_UNKNOWN:
            unsure = True
        except MetadataConflictError:
            if not unsure or expected is not None:
                raise
        except NoSuchKeyError:
            if not unsure:
                raise
            return None
        there = await get_or_none(store, path, fresh=True)
        if there is None or there.created_txn != created_txn:
            return None
        found = there
    raise MetadataUnavailableError(
        f"{path} was not deleted: the store gave no answer to {LOST_MAX} attempts; try again later"
    )


async def get_or_none(store: MetadataStore, path: str, *, fresh: bool = False) -> Versioned[bytes] | None:
    """The value, read after a sync if it has to be ``fresh``; None: there is none. Raises as ``get``."""
    if fresh:
        await store.sync(path)
    try:
        return await store.get(path)
    except NoSuchKeyError:
        return None


async def names_below(store: MetadataStore, path: str, *, fresh: bool = False) -> list[str]:
    """The names below a path, sorted; none where there is no such path. ``fresh``: after a sync. Raises as
    ``children``."""
    if fresh:
        await store.sync(path)
    try:
        return await store.children(path)
    except NoSuchKeyError:
        return []


async def put(store: MetadataStore, path: str, value: bytes, *, ephemeral: bool = False) -> None:
    """Replace whatever value there is, or create it. Raises as ``set`` and ``create``."""
    try:
        await store.set(path, value, None)
    except NoSuchKeyError:
        await store.create(path, value, ephemeral=ephemeral, parents=True)


async def ensure_created(store: MetadataStore, path: str, value: bytes = b"") -> None:
    """As :func:`settled_create`, with the parents; a value of somebody else stays as it is."""
    with suppress(KeyExistsError):
        await settled_create(store, path, value, parents=True)


async def ensure_deleted(store: MetadataStore, path: str) -> None:
    """As :func:`settled_delete` of any version, also if there is no value."""
    with suppress(NoSuchKeyError):
        await settled_delete(store, path, None)


async def update(store: MetadataStore, path: str, change: Callable[[bytes], bytes]) -> Versioned[bytes]:
    """Read, change and write a value. Starts over if someone else wrote in between (M1).

    ``change`` is pure and may run several times; it raises to give up. The loop has no limit on purpose: each conflict
    means that someone else succeeded. If two writers write equal bytes, both succeed (settled_set).
    """
    while True:
        current = await store.get(path)
        value = change(current.value)
        try:
            return Versioned(value, await settled_set(store, path, value, current.version), current.created_ms)
        except MetadataConflictError:
            continue


def once_more(error: E) -> E:
    """A copy of the error for another caller. One object raised in many places would collect all their tracebacks, and
    keep alive what those refer to."""
    return type(error)(*error.args)


def check_creation(path: str, found: int, expected: int) -> None:
    """Check that the write ``expected`` created the value; 0 stands for any write.

    Raises:
        NoSuchKeyError: another write created it.
    """
    if expected and found != expected:
        raise NoSuchKeyError(f"{path} was deleted and created anew, by write {found} instead of {expected}")


_NO_PART: Final = re.compile(r"/(?:\.\.?)?(?:/|\Z)")


def check_path(path: str) -> str:
    """Return ``path`` if it is valid: absolute, without empty or relative parts, without a slash at the end.

    Raises:
        ValueError: it is not valid.
    """
    if path != "/" and (path[:1] != "/" or _NO_PART.search(path) is not None):
        raise ValueError(f"{path} is not a path of a metadata store")
    return path


def parent_of(path: str) -> str:
    """The parent's path; the root's parent is the root."""
    return path.rpartition("/")[0] or "/"
