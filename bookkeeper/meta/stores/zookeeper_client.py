"""Makes the ZooKeeper client, with identity, encryption and access lists, and translates its errors and log lines.

* The client logs requests at level DEBUG, with credentials and ledger passwords; these records are dropped. Warnings
  that repeat while a server is away are logged once in a while, with their number.
* With credentials every new node belongs to its creator alone. ZooKeeper refuses such a node to a session that it does
  not know, so a failed authentication never leaves open nodes.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kazoo import exceptions as zk
from kazoo.client import KazooClient
from kazoo.protocol import serialization as parts
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, Permissions

from bookkeeper.errors import (
    ConfigError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataForbiddenError,
    MetadataUnavailableError,
    NoSuchKeyError,
    NotEmptyError,
    SessionExpiredError,
)
from bookkeeper.meta.store import Check, Create, Delete, Operation, Set
from bookkeeper.meta.stores.credentials import Credentials, ZooKeeperTls
from bookkeeper.meta.stores.zookeeper_threads import Handler, ReadAheadSocket
from bookkeeper.rate_limited_log import RateLimit, counted
from bookkeeper.real import FileTls
from bookkeeper.seams import TlsFiles


class TlsHandler(Handler):
    """The client's threads, and its connections by TLS: by the same code, with the same rules, as those to bookies.

    The client's own context would trust the public authorities beside the one that was named, would take a key that
    others may read, and would never look at its files again.

    Raises:
        ConfigError: a file cannot be read or used, or others may read the private key.
    """

    def __init__(self, tls: ZooKeeperTls) -> None:
        super().__init__()
        self._public = tls.ca is None
        self._tls = FileTls(
            TlsFiles(server=False, cert=tls.certificate, key=tls.key, ca=tls.ca, verify_host=not tls.insecure_any_host)
        )

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> ReadAheadSocket:
        """Connect, and shake hands. Raises: OSError."""
        try:
            self._tls.refresh()
        except ConfigError as error:
            _log.warning("the changed TLS files for ZooKeeper cannot be used, so the old ones stay in use: %s", error)
        context = self._tls.context
        if self._public:
            context.load_default_certs()
        plain = super().create_connection(address, timeout=timeout).plain
        try:
            plain.settimeout(timeout)
            return ReadAheadSocket(context.wrap_socket(plain, server_hostname=hostname))
        except BaseException:
            plain.close()
            raise


REPEAT_S: Final = 30.0
"""Seconds until the same warning of the client is logged again."""

_CREATOR: Final = Id("auth", "")
"""The access list "all rights to the creator"; ZooKeeper refuses it from a session without identity."""

OPEN: Final = OPEN_ACL_UNSAFE
"""The access list of a session without identity: everybody may do everything."""

_RIGHTS: Final = (
    (Permissions.CREATE, "c"),
    (Permissions.DELETE, "d"),
    (Permissions.READ, "r"),
    (Permissions.WRITE, "w"),
    (Permissions.ADMIN, "a"),
)
_NO_ANSWER = (zk.ConnectionLoss, zk.OperationTimeoutError, zk.ConnectionClosedError)
_AFTERMATH = (zk.RolledBackError, zk.RuntimeInconsistency)
_TRANSLATED: Final[list[tuple[type[Exception], type[MetadataError]]]] = [
    (zk.NoNodeError, NoSuchKeyError),
    (zk.NodeExistsError, KeyExistsError),
    (zk.BadVersionError, MetadataConflictError),
    (zk.NotEmptyError, NotEmptyError),
    (zk.SessionExpiredError, SessionExpiredError),
    (zk.SessionMovedError, MetadataUnavailableError),
]


class RepeatedLogFilter(logging.Filter):
    """Drops records below INFO, and records that repeat one of a moment ago."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = RateLimit(REPEAT_S)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO:
            return False
        left_out = self._limit.admit(record.created, record.msg)
        if left_out:
            record.msg, record.args = record.getMessage() + counted(left_out), ()
        return left_out is not None


_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())
_log.addFilter(RepeatedLogFilter())


KEPT_MAX: Final = 1000
"""Records of a client's log that are kept before its first contact; the newest."""


class ConnectionLog(logging.Logger):
    """The log of one client. What it says before the first contact is kept: :meth:`show` writes it, and what follows.

    A client that makes no contact says so in several lines, and its error says the same once.
    """

    def __init__(self) -> None:
        super().__init__(__name__)
        self._kept: deque[logging.LogRecord] | None = deque(maxlen=KEPT_MAX)

    def isEnabledFor(self, level: int) -> bool:
        return _log.isEnabledFor(level)

    def handle(self, record: logging.LogRecord) -> None:
        kept = self._kept
        if kept is None:
            _log.handle(record)
            return
        kept.append(record)
        if self._kept is None:  # shown meanwhile: the client's threads write at any time
            self._write(kept)

    def show(self) -> None:
        """Write what was kept, and from now on everything at once."""
        kept, self._kept = self._kept, None
        if kept is not None:
            self._write(kept)

    def _write(self, kept: deque[logging.LogRecord]) -> None:
        while kept:
            with contextlib.suppress(IndexError):  # another thread was faster
                _log.handle(kept.popleft())


def new_client(hosts: str, credentials: Credentials, session_timeout_s: float, log: logging.Logger = _log) -> Any:
    """Make a client, without starting it. Raises: ConfigError."""
    credentials.check_way(hosts)
    options: dict[str, Any] = {}
    if credentials.user is not None and credentials.password is not None:
        password = credentials.password.reveal()
        if credentials.scheme == "digest":
            options["auth_data"] = [("digest", f"{credentials.user}:{password}")]
        else:
            options["sasl_options"] = {
                "mechanism": "DIGEST-MD5",
                "username": credentials.user,
                "password": password,
            }
    if (tls := credentials.tls) is not None:
        options["handler"] = TlsHandler(tls)
    else:
        options["handler"] = Handler()
    return KazooClient(
        hosts=hosts,
        timeout=session_timeout_s,
        default_acl=access_list(credentials),
        connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0},
        logger=log,
        **options,
    )


@dataclass(frozen=True, slots=True)
class Numbered(Create):
    """Creates a value whose name gets the parent's next number."""


_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2


def new_transaction(client: Any, operations: Iterable[Operation]) -> Any:
    """The client's request for these operations, whose paths were checked. Its own methods for the parts of a request
    split and join each path twice, which is a tenth of what the creation of a ledger costs."""
    request = client.transaction()
    root, acl = client.chroot, client.default_acl or OPEN
    for operation in operations:
        path = root + operation.path if operation.path != "/" else root or "/"
        match operation:
            case Create(_, value, ephemeral):
                flags = _EPHEMERAL * ephemeral | _SEQUENTIAL * isinstance(operation, Numbered)
                part = parts.Create(path, value, acl, flags)
            case Set(_, value, expected):
                part = parts.SetData(path, value, -1 if expected is None else expected)
            case Delete(_, expected):
                part = parts.Delete(path, -1 if expected is None else expected)
            case Check(_, expected):
                part = parts.CheckVersion(path, -1 if expected is None else expected)
        request.operations.append(part)
    return request


def access_list(credentials: Credentials) -> list[ACL] | None:
    """The access list of new nodes; None without an identity: open to everybody, as in Java."""
    if not credentials.identified:
        return None
    readers = [ACL(Permissions.READ, Id(scheme, name)) for scheme, name in credentials.readers]
    return [ACL(Permissions.ALL, _CREATOR), *readers]


def rights(permissions: int) -> str:
    """The rights as ZooKeeper's tools write them: ``cdrwa``."""
    return "".join(letter for bit, letter in _RIGHTS if permissions & bit)


def translate(what: str, error: Exception, who: str) -> MetadataError:
    """Translate the client's error into one of this package. ``who``: the identity, in words."""
    if isinstance(error, _NO_ANSWER):
        return MetadataUnavailableError(f"{what}: no answer from ZooKeeper ({type(error).__name__})")
    for theirs, ours in _TRANSLATED:
        if isinstance(error, theirs):
            return ours(what)
    if isinstance(error, zk.AuthFailedError):
        return MetadataForbiddenError(f"{what}: ZooKeeper refused our credentials ({who})")
    if isinstance(error, zk.InvalidACLError):
        return MetadataForbiddenError(f"{what}: ZooKeeper does not know this session as {who}; nothing was created")
    if isinstance(error, zk.NoAuthError):
        return MetadataForbiddenError(
            f"{what}: the node's access list does not allow this to {who}; see `bk metadata audit-acls`"
        )
    return MetadataError(f"{what}: ZooKeeper says {type(error).__name__} {error}".rstrip())


def cause_of(failures: Sequence[Exception]) -> Exception:
    """Which of a transaction's errors made it fail; the others only say that it did."""
    return next((failure for failure in failures if not isinstance(failure, _AFTERMATH)), failures[0])


def is_unknown_identity(answer: object) -> bool:
    """Whether ZooKeeper does not know who asks."""
    return isinstance(answer, zk.InvalidACLError)
