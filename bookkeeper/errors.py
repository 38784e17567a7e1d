"""Every failure this package raises on purpose.

Callers branch on the *family* (``except BookieError``); retry loops read ``retryable`` and ``outcome``;
nobody reads a message.

* :exc:`BookKeeperError`
    * :exc:`LedgerError` -- the ledger itself says no
        * :exc:`NoSuchLedgerError`, :exc:`LedgerExistsError`, :exc:`LedgerClosedError`
        * :exc:`LedgerFencedError` (outcome unknown)
        * :exc:`NoSuchEntryError`, :exc:`DataMissingError`
        * :exc:`UnauthorizedError` -- another password
        * :exc:`NoLedgerKeyError` -- its entries are encrypted, and their key is not to be had
        * :exc:`PartialAppendError` -- a run of adds of which a prefix is confirmed
        * :exc:`AddTimeoutError` (outcome unknown), :exc:`RecoveryInconclusiveError` (retryable)
        * :exc:`DuplicateEntryError`, :exc:`EntryTooLargeError`, :exc:`IllegalOperationError`
    * :exc:`BookieError` -- one bookie says no, another may say yes
        * :exc:`BookieUnavailableError` (retryable, outcome unknown)
        * :exc:`RequestTimedOutError` (retryable, outcome unknown)
        * :exc:`BookieReadOnlyError`, :exc:`TooManyRequestsError` (retryable), :exc:`BookieFailedError`
        * :exc:`DataUnknownError`, :exc:`ProtocolVersionError`, :exc:`BadRequestError`
        * :exc:`SecureConnectionError` -- TLS or authentication with the bookie failed
    * :exc:`NotEnoughBookiesError` (retryable)
    * :exc:`MetadataError` -- the metadata store, or what it holds
        * :exc:`MetadataConflictError` -- a compare-and-set lost; re-read
        * :exc:`NoSuchKeyError`, :exc:`KeyExistsError`, :exc:`NotEmptyError`
        * :exc:`MetadataUnavailableError` (retryable, outcome unknown), :exc:`SessionExpiredError`
        * :exc:`MetadataFormatError`, :exc:`MetadataRolledBackError`, :exc:`MetadataForbiddenError`
        * :exc:`NoClusterError`, :exc:`ClusterExistsError`, :exc:`ClusterMovedError`, :exc:`SessionsLiveError`
        * :exc:`IdsUsedUpError`
    * :exc:`CorruptionError` -- bytes are not what they were
        * :exc:`DigestMismatchError`, :exc:`DecryptionError`
    * :exc:`StorageError` -- a bookie's own disk
        * :exc:`DiskFullError`, :exc:`DirectoryLockedError`, :exc:`CookieError`, :exc:`UnsupportedFormatError`
    * :exc:`MalformedFrameError` -- bytes from a peer that are no message
    * :exc:`ClientClosedError`, :exc:`ConfigError`, :exc:`AuthenticationError`, :exc:`InvariantError`
"""

from __future__ import annotations

import errno
import os
import re
from typing import ClassVar, Final

from bookkeeper.outcome import Outcome as Outcome
from bookkeeper.outcome import check_raising as check_raising


class BookKeeperError(Exception):
    """The base class of every error that this package raises on purpose."""

    code: ClassVar[int | None] = None
    """The number of this error in Apache BookKeeper (``BKException``), for logs and tools. Each class has its own."""

    retryable: ClassVar[bool] = False
    """The same call may succeed later without anyone changing anything."""

    outcome: Outcome = Outcome.REJECTED
    """Usually as the class says. An append that was already sent gets UNKNOWN, whatever error ended its writer."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if (code := cls.__dict__.get("code")) is not None:
            assert code not in BY_CODE, f"code {code} already belongs to {BY_CODE[code].__name__}"
            BY_CODE[code] = cls


BY_CODE: dict[int, type[BookKeeperError]] = {}
"""The class for each code of Apache BookKeeper."""


# -- the ledger itself says no ---------------------------------------------------------------------------


class LedgerError(BookKeeperError):
    """The ledger itself refuses: another bookie would refuse as well."""


class NoSuchLedgerError(LedgerError):
    """The ledger does not exist: it was never created, or it was deleted."""

    code = -7


class LedgerExistsError(LedgerError):
    """A ledger with the requested id exists already."""

    code = -20


class LedgerClosedError(LedgerError):
    """The ledger is closed, by its writer or by a recovery. Nothing can be added to it any more."""

    code = -11


class LedgerFencedError(LedgerError):
    """Someone has begun to recover this ledger: its writer must stop.

    A fenced add is *not* a failed add. Enough bookies may already hold the entry for recovery to keep it.
    """

    code = -101
    outcome = Outcome.UNKNOWN


class NoSuchEntryError(LedgerError):
    """The entry does not exist (it lies past the end, or it was never written)."""

    code = -13


class DataMissingError(LedgerError):
    """An entry that must exist is on none of its bookies: acknowledged data is gone. Not an end of ledger."""

    code = -2


class UnauthorizedError(LedgerError):
    """The given password is not the password of the ledger."""

    code = -102


class NoLedgerKeyError(LedgerError):
    """The ledger's entries are encrypted, and this client does not have the key, or has another one under its id. Or
    they are not encrypted, and this client insists on that."""


class PartialAppendError(LedgerError):
    """A run of appends ended partly done: everything up to ``confirmed`` is durable, the rest is unknown."""

    outcome = Outcome.UNKNOWN

    def __init__(self, message: str, *, confirmed: tuple[int, ...] = (), first_unknown: int) -> None:
        super().__init__(message)
        self.confirmed = confirmed
        """Ids of the entries of this call that are durable, in order."""
        self.first_unknown = first_unknown
        """The first id of this call whose outcome is unknown; so are all after it."""


class AddTimeoutError(LedgerError):
    """Too few bookies confirmed an add before its deadline."""

    code = -21
    retryable = False
    outcome = Outcome.UNKNOWN


class RecoveryInconclusiveError(LedgerError):
    """Recovery could neither prove an entry present nor absent. The ledger stays in recovery; try again later."""

    code = -10
    retryable = True


class DuplicateEntryError(LedgerError):
    """The entry id that the caller chose is already in use."""

    code = -22


class EntryTooLargeError(LedgerError):
    """The entry would not fit into one frame."""


class IllegalOperationError(LedgerError):
    """The handle cannot do this: it is read-only and was asked to write, or it is closed."""

    code = -100


# -- one bookie says no ----------------------------------------------------------------------------------


class BookieError(BookKeeperError):
    """One bookie cannot do what was asked; another bookie may."""


class BookieUnavailableError(BookieError):
    """No connection to the bookie, or it was lost before the answer came."""

    code = -8
    retryable = True
    outcome = Outcome.UNKNOWN


class RequestTimedOutError(BookieError):
    """The bookie did not answer in time."""

    code = -23
    retryable = True
    outcome = Outcome.UNKNOWN


class BookieReadOnlyError(BookieError):
    """The bookie takes no new entries (disk full, or by order)."""

    code = -104


class TooManyRequestsError(BookieError):
    """The bookie has as many requests in progress as it allows."""

    code = -105
    retryable = True


class BookieFailedError(BookieError):
    """The bookie met an I/O error or an unexpected condition."""

    code = -12
    outcome = Outcome.UNKNOWN


class DataUnknownError(BookieError):
    """The bookie cannot tell whether it ever had the entry (limbo, rebuilding, damaged files)."""

    code = -108


class ProtocolVersionError(BookieError):
    """The peer speaks another version of the protocol."""

    code = -16


class BadRequestError(BookieError):
    """The bookie rejects the request as malformed."""

    code = -14


class SecureConnectionError(BookieError):
    """TLS or authentication with this bookie failed. Nothing was sent to it that anybody could use."""

    code = -24


class NotEnoughBookiesError(BookKeeperError):
    """Fewer usable bookies than the ensemble or the ack quorum needs."""

    code = -6
    retryable = True


# -- metadata --------------------------------------------------------------------------------------------


class MetadataError(BookKeeperError):
    """The metadata store cannot do what was asked, or what it holds is wrong."""

    code = -18


class MetadataConflictError(MetadataError):
    """A compare-and-set lost: someone else changed the value in between. Read it again and decide again."""

    code = -17


class NoSuchKeyError(MetadataError):
    """There is no value under this path."""


class KeyExistsError(MetadataError):
    """There is a value under this path already."""


class NotEmptyError(MetadataError):
    """The path has children and cannot be deleted."""


class MetadataUnavailableError(MetadataError):
    """The store cannot be reached now; a write may or may not have been done."""

    code = -9
    retryable = True
    outcome = Outcome.UNKNOWN


class SessionExpiredError(MetadataError):
    """Our session with the store has ended, and its ephemeral values are gone. What was read before may be outdated."""

    outcome = Outcome.UNKNOWN


class MetadataFormatError(MetadataError):
    """A stored value cannot be decoded, or it breaks a rule of its kind."""

    code = -107


class MetadataRolledBackError(MetadataError):
    """The store shows an older state than before: it was restored from a backup, or it lost data."""


class MetadataForbiddenError(MetadataError):
    """The metadata store does not accept our credentials, or a node's access list does not allow this step."""


class NoClusterError(MetadataError):
    """There is no cluster at this address; ``bk init`` makes one."""


class ClusterExistsError(MetadataError):
    """There is a cluster at this address already."""


class ClusterMovedError(MetadataError):
    """The cluster's metadata have moved to another store, or a copy into this one has not ended."""


class IdsUsedUpError(MetadataError):
    """The cluster uses Java's flat or legacy layout and has issued every ledger id of that layout."""


class SessionsLiveError(MetadataError):
    """The cluster is in use, and this step needs an idle cluster."""


# -- bytes -----------------------------------------------------------------------------------------------


class CorruptionError(BookKeeperError):
    """Bytes are not what they were when they were written."""


class DigestMismatchError(CorruptionError):
    """An entry does not match its digest, or is another entry than the one asked for."""

    code = -5


class DecryptionError(CorruptionError):
    """An entry of an encrypted ledger is not what its writer has sealed: somebody without the key has replaced it."""


class MalformedFrameError(BookKeeperError):
    """A peer sent bytes that are no message of either protocol."""


# -- a bookie's own disk ---------------------------------------------------------------------------------


class StorageError(BookKeeperError):
    """A bookie's own disk or directories cannot be used."""


class DiskFullError(StorageError):
    """The disk has no space for new entries. Reads, fences and recovery adds go on."""


class DirectoryLockedError(StorageError):
    """Another process uses this directory."""


class CookieError(StorageError):
    """This directory does not belong to this bookie of this cluster."""


class UnsupportedFormatError(StorageError):
    """A file was written by an older or newer version than this program reads."""


# -- the rest --------------------------------------------------------------------------------------------


class ClientClosedError(BookKeeperError):
    """The client was closed."""

    code = -19
    outcome = Outcome.UNKNOWN


class ConfigError(BookKeeperError):
    """A setting is unknown, or its value is not allowed."""


class AuthenticationError(BookKeeperError):
    """A provider of authentication does not accept the peer."""

    claimed: str = ""
    """The name that the peer presented, where it presented one; for the audit log. Never a secret."""


class InvariantError(BookKeeperError):
    """A rule of docs/rules.md does not hold, so this component must stop. The cause is a bug or damaged memory."""

    code = -999


check: Final = check_raising(InvariantError)
"""Stop if an invariant that guards data does not hold. Raises InvariantError, which names the rule."""


def require(condition: bool, sentence: str) -> None:
    """Refuse a setting unless ``condition`` holds. ``sentence`` says what was given and what is allowed.

    Raises:
        ConfigError: with ``sentence`` as its text.
    """
    if not condition:
        raise ConfigError(sentence)


def require_range(
    settings: object,
    *names: str,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    table: str = "",
) -> None:
    """Refuse numbers that are out of range. ``table`` stands before each name, for instance ``"tls."``.

    Raises:
        ConfigError: names the setting, what was given and what is allowed.
    """
    for name in names:
        value = getattr(settings, name)
        fits = (
            value == value  # not a number is in no range
            and (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
            and (below is None or value < below)
        )
        if not fits:
            limits = {"at least": least, "more than": above, "at most": most, "less than": below}
            allowed = [f"{words} {limit:.15g}" for words, limit in limits.items() if limit is not None]
            raise ConfigError(f"{table}{name} must be {' and '.join(allowed)}, not {value}")


def require_below(settings: object, name: str, bound: str, *, or_equal: bool = False) -> None:
    """Refuse ``name`` unless it is less than the setting ``bound``, or with ``or_equal`` at most as large.

    Raises:
        ConfigError: names both settings, and what was given for each.
    """
    value, limit = getattr(settings, name), getattr(settings, bound)
    fits = value <= limit if or_equal else value < limit
    relation = "at most" if or_equal else "less than"
    require(fits, f"{name} must be {relation} {bound} ({limit}), not {value}")


_BIND: Final = re.compile(r"address \('([^']+)', (\d+)")
"""Finds the address at which asyncio or uvloop could not listen."""


_NUMBERED: Final = re.compile(r"\[Errno -?\d+\] ([^:;()\[\]]+)(?:: '([^']*)')?")
"""Finds an error of the system inside another error's text: its words, and its file."""


_CONNECT: Final = re.compile(r"(?:\[Errno (\d+)\] )?Connect call failed \([^()]*\)")
"""Finds asyncio's words for "nobody answered at this address". With several addresses they come once for each."""


def _unnumbered(found: re.Match[str]) -> str:
    return found[1] if found[2] is None else f"{found[2]}: {found[1]}"


def _system_text(error: BaseException) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror is not None else str(error)


def in_words(error: BaseException, beside: str = "") -> str:
    """An error as people read it: without the system's error numbers and without Python's notation.

    ``beside`` is a file that the sentence names already; it is not named again.
    """
    if _CONNECT.search(str(error)):
        number = error.errno if isinstance(error, OSError) else None
        return _CONNECT.sub(
            lambda found: os.strerror(int(found[1] or number or errno.ECONNREFUSED)), _system_text(error)
        )
    if not isinstance(error, OSError) or error.strerror is None:
        return _NUMBERED.sub(_unnumbered, str(error)) or type(error).__name__
    if (bound := _BIND.search(error.strerror)) is not None:
        address = f"{bound[1]}:{bound[2]}"
        if error.errno == errno.EADDRINUSE:
            return f"{address} is taken: another program listens there. End it, or choose another port"
        return f"cannot listen at {address}: {error.strerror.rpartition(': ')[2]}"
    named = [str(name) for name in (error.filename, error.filename2) if name not in (None, beside)]
    return f"{', '.join(named)}: {error.strerror}" if named else error.strerror
