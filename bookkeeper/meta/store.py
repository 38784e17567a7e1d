"""Versioned values under paths: all that BookKeeper asks of a metadata service.

Guarantees every implementation gives, and tests/contracts/metadata_store.py checks

* **M1** A write names the version it replaces; if that is no longer the present one, it changes nothing
  and raises :exc:`MetadataConflictError`. A created value has version 0, each write adds one.
* After a write returned, every later read by its own session sees it or a newer one; so does everybody
  else's after :meth:`MetadataStore.sync` (Z6).
* An ephemeral value goes when the session that made it ends, not before.
* **M8, Z4** A write is sent once. If its reply is lost it raises :exc:`MetadataUnavailableError`: it may have been
  done. :func:`settled_set`, :func:`settled_create` and :func:`settled_delete` re-read and compare; whoever
  writes goes through them.
* **Z3, Z5** A watch stays until it is closed. Its callback takes no value and means "re-read": it comes after every
  change since the watch was asked for, may come without a change, and comes when the session was in doubt.
  It runs on the loop's thread, never inside a call of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
)

Version = NewType("Version", int)
"""Counts the writes of one value from 0 (ZooKeeper's numbers)."""

T = TypeVar("T")
E = TypeVar("E", bound=MetadataError)


@dataclass(frozen=True, slots=True)
class Versioned(Generic[T]):
    """A value and the version a write must name to replace it."""

    value: T
    version: Version
    created_ms: int = field(default=0, compare=False)
    """When the value was created, by the store's wall clock (milliseconds since 1970). For people."""
    transaction: int = field(default=0, compare=False)
    """Store-wide number of the write that made this version (ZooKeeper: mzxid). Only grows (M10)."""
    created_txn: int = field(default=0, compare=False)
    """Store-wide number of the write that created the value (ZooKeeper: czxid): versions begin anew with every life of
    a path, this does not. 0: not known."""


class SessionState(Enum):
    """How much this process may believe (Z1)."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No contact: the session may be gone already. Act as if it were."""
    LOST = "lost"
    """Gone, with its ephemeral values. A new session follows by itself; everything is rebuilt from a fresh read."""


class Watch(Protocol):
    """A subscription."""

    def close(self) -> None:
        """No callback comes after this. Idempotent."""


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
        """Names the session; another one after a loss. 0 before the first."""

    @property
    def last_transaction(self) -> int:
        """The highest store-wide transaction number seen (Z14, M10)."""

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        """What was found, once this store has shown less than it had shown before (M10); then it stays."""

    async def get(self, path: str) -> Versioned[bytes]:
        """Raises: NoSuchKeyError."""

    async def exists(self, path: str) -> Version | None: ...

    async def owner(self, path: str) -> int | None:
        """The session that owns an ephemeral value; None if it is not ephemeral. Raises: NoSuchKeyError."""

    async def children(self, path: str) -> list[str]:
        """Names right below ``path``, sorted. Raises: NoSuchKeyError."""

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
            KeyExistsError: there is one.
            NoSuchKeyError: the parent is missing and ``parents`` is false.
            MetadataError: the parent is ephemeral.
        """

    async def set(self, path: str, value: bytes, expected: Version | None, *, created_txn: int = 0) -> Version:
        """Replace a value; with ``born`` only in the life that began with that write.

        ZooKeeper cannot compare that within a write. There it is read immediately before, after a sync: to slip in
        between, somebody would have to delete the value, create it and write it up to ``expected`` while two requests
        are under way; the reply would tell, and MetadataError is raised.

        Raises:
            NoSuchKeyError: there is none, or another one that was created since.
            MetadataConflictError.
        """

    async def delete(self, path: str, expected: Version | None) -> None:
        """Raises: NoSuchKeyError, MetadataConflictError, NotEmptyError."""

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        """All or nothing, in order; answers the versions of Create and Set. Raises what the first failure raises."""

    async def sync(self, path: str) -> None:
        """What anybody wrote before this call is seen by reads after it (Z6)."""

    async def check_not_rolled_back(self, transaction: int) -> None:
        """Compare what the store shows now with what was seen before, also by an earlier process (M10).

        A store does this by itself with what it saw, at each new session; once it found a rollback, every write
        raises the same.

        Raises:
            MetadataRolledBackError: the store's newest transaction is below ``transaction``.
        """

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        """Call back when the value is created, replaced or deleted."""

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        """Call back when a name below ``path`` appears or goes, or ``path`` itself does."""

    def on_session(self, callback: Callable[[SessionState], None]) -> Watch:
        """Call back with each change of :attr:`session`."""

    async def close(self) -> None:
        """End the session and with it its ephemeral values. Idempotent."""


# -- deciding a write whose reply was lost ------------------------------------------------------------------

LOST_MAX: Final = 10
"""So many times in a row a write gets no answer and is not done: then it is no accident. ZooKeeper ends the connection
of whoever sends it more than ``jute.maxbuffer``, and to try that for ever would cut off everybody in this session."""


def _lost_too_often(path: str, size: int) -> MetadataUnavailableError:
    return MetadataUnavailableError(
        f"{path}: {LOST_MAX} times {size} bytes were sent, no answer came, and they were not written; if the store is "
        "well, they are too many for it (ZooKeeper: jute.maxbuffer, by default 1 MiB)"
    )


async def settled_set(
    store: MetadataStore, path: str, value: bytes, expected: Version, *, created_txn: int = 0
) -> Version:
    """Replace a value and know whether it was done (M8).

    After a lost reply the value is read again: present in the expected version it is written again, present
    as our bytes in the next version it was written. So equal bytes by two writers count as done for both:
    whoever needs to be the only one puts something unique into the value. ``born`` as for ``set``.

    Raises:
        MetadataConflictError, NoSuchKeyError: as ``set``; also if our write was done and replaced since.
        MetadataUnavailableError: the store could not be asked again, or did not take it ``LOST_MAX`` times; unknown.
    """
    for _ in range(LOST_MAX):
        try:
            return await store.set(path, value, expected, created_txn=created_txn)
        except MetadataUnavailableError:
            await store.sync(path)
            found = await store.get(path)
        check_creation(path, found.created_txn, created_txn)
        if found.version == expected:
            continue
        if found.version == expected + 1 and found.value == value:
            return found.version
        raise MetadataConflictError(f"{path}: wrote over version {expected}, lost the reply, found {found.version}")
    raise _lost_too_often(path, len(value))


async def settled_set_if(
    store: MetadataStore,
    path: str,
    value: bytes,
    expected: Version,
    conditions: Sequence[Check],
    *,
    created_txn: int = 0,
) -> Version:
    """As :func:`settled_set`, in one write that is done only if ``conditions`` hold, too. ``born`` is looked at right
    before the write and right after it.

    Raises:
        MetadataConflictError: also when one of them does not hold.
        NoSuchKeyError, MetadataUnavailableError: as settled_set.
        MetadataError: as ``set`` with ``born``.
    """
    for _ in range(LOST_MAX):
        await store.sync(path)
        check_creation(path, (await store.get(path)).created_txn, created_txn)
        try:
            version = (await store.multi([*conditions, Set(path, value, expected)]))[-1]
            assert version is not None
        except NoSuchKeyError as error:
            await store.sync(path)
            check_creation(
                path, (await store.get(path)).created_txn, created_txn
            )  # raises if it is this one that is gone
            raise MetadataConflictError(f"{path}: what the write depends on is gone: {error}") from error
        except MetadataUnavailableError:
            await store.sync(path)
            found = await store.get(path)
            check_creation(path, found.created_txn, created_txn)
            if found.version == expected:
                continue
            if found.version == expected + 1 and found.value == value:
                return found.version
            raise MetadataConflictError(
                f"{path}: wrote over version {expected}, lost the reply, found {found.version}"
            ) from None
        try:
            check_creation(path, (await store.get(path)).created_txn, created_txn)
        except NoSuchKeyError as error:
            raise MetadataError(
                f"{error}, at the moment of the write, which may have been done in the new one"
            ) from error
        return version
    raise _lost_too_often(path, len(value))


async def settled_create(store: MetadataStore, path: str, value: bytes, *, parents: bool = False) -> Version:
    """Create a value that is unique to its creator, and know whether it was done (M5, M8).

    Raises:
        KeyExistsError: there is one, and it is not ours.
        MetadataUnavailableError: the store could not be asked again, or did not take it ``LOST_MAX`` times; unknown.
    """
    for _ in range(LOST_MAX):
        try:
            return (await store.create(path, value, parents=parents))[1]
        except MetadataUnavailableError:
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
            raise KeyExistsError(path)
        return found.version
    raise _lost_too_often(path, len(value))


async def settled_delete(store: MetadataStore, path: str, expected: Version | None) -> None:
    """Delete a value and know whether it is gone (M8); one that was gone before a lost reply counts as deleted.

    Raises:
        MetadataConflictError, NoSuchKeyError, NotEmptyError: as ``delete``.
        MetadataUnavailableError: the store could not be asked again; still unknown.
    """
    unsure = False
    while True:
        try:
            await store.delete(path, expected)
        except MetadataUnavailableError:
            unsure = True
            await store.sync(path)
            if await store.exists(path) is None:
                return
        except NoSuchKeyError:
            if not unsure:
                raise
            return
        else:
            return


async def update(store: MetadataStore, path: str, change: Callable[[bytes], bytes]) -> Versioned[bytes]:
    """Read, change, write; start over if someone else wrote in between (M1).

    ``change`` is pure and may run several times; it raises to give up. The loop has no limit on purpose: each
    conflict means someone else got through. Equal bytes by two writers count as done for both (settled_set).
    """
    while True:
        current = await store.get(path)
        value = change(current.value)
        try:
            return Versioned(value, await settled_set(store, path, value, current.version), current.created_ms)
        except MetadataConflictError:
            continue


def once_more(error: E) -> E:
    """The same error for another caller: one object raised in many places would collect all their tracebacks, and with
    them whatever those hold, for as long as somebody tries."""
    return type(error)(*error.args)


def check_creation(path: str, found: int, expected: int) -> None:
    """Raises: NoSuchKeyError: the value was created by another write than ``expected`` (0: whichever)."""
    if expected and found != expected:
        raise NoSuchKeyError(f"{path}: it was deleted, and created anew (by write {found}, not {expected})")


def check_path(path: str) -> str:
    """``path`` if it is one: absolute, no empty or relative parts, no slash at the end.

    Raises:
        ValueError: it is not.
    """
    if path != "/" and (not path.startswith("/") or any(part in ("", ".", "..") for part in path[1:].split("/"))):
        raise ValueError(f"not a path: {path!r}")
    return path


def parent_of(path: str) -> str:
    """The path above; the root's is itself."""
    return path.rpartition("/")[0] or "/"
