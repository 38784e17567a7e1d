"""What the matrix asks of a client in either language, and our client. Everything blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bookkeeper import ClientConfig, LedgerMetadata, sync
from bookkeeper.errors import BookKeeperError, LedgerClosedError, LedgerFencedError
from bookkeeper.net.tls import TlsConfig

PASSWORD: Final = b"a password"
LONGEST_S: Final = 30.0
"""No single call takes longer, or its cell is red."""


class FencedError(Exception):
    """The writer has been told that somebody else has taken its ledger over."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a ledger is made."""

    ensemble: int = 3
    write_quorum: int = 3
    ack_quorum: int = 2
    digest: str = "crc32c"
    custom: Mapping[str, bytes] | None = None
    ledger_id: int | None = None
    deferred_sync: bool = False
    advanced: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A ledger's metadata, as one client reads it."""

    state: str
    ensemble: int
    write_quorum: int
    ack_quorum: int
    last_entry: int
    length: int
    digest: str
    custom: Mapping[str, bytes]
    fragments: Mapping[int, tuple[str, ...]]


class Writer(Protocol):
    """The writer of one ledger."""

    @property
    def id(self) -> int: ...
    @property
    def confirmed(self) -> int: ...
    def append(self, payload: bytes) -> int:
        """Raises: FencedError."""

    def append_many(self, payloads: Sequence[bytes]) -> list[int]:
        """All in flight at once."""

    def append_at(self, entries: Sequence[tuple[int, bytes]]) -> list[int]:
        """All in flight at once, in this order; the ids as answered. Only of advanced ledgers."""

    def force(self) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None:
        """Let go without closing."""


class Reader(Protocol):
    """A ledger opened for reading."""

    @property
    def confirmed(self) -> int:
        """The last add confirmed that the handle knows; asks nobody."""

    @property
    def closed(self) -> bool: ...
    @property
    def length(self) -> int: ...
    def read(self, first: int, last: int) -> list[bytes]: ...
    def read_unconfirmed(self, entry_id: int) -> bytes: ...
    def read_batch(self, first: int, count: int, size: int) -> list[bytes]: ...
    def ask_confirmed(self) -> int:
        """Ask the bookies for the last add confirmed."""

    def wait_for(self, entry_id: int, timeout_ms: int) -> bytes | None:
        """Long poll until the entry is confirmed; None: it was not in time."""

    def close(self) -> None: ...


class Client(Protocol):
    """One client of one cluster, over one protocol."""

    language: str

    def create(self, shape: Shape) -> Writer: ...
    def open(self, ledger_id: int, *, recovery: bool = True) -> Reader: ...
    def delete(self, ledger_id: int) -> None: ...
    def ledgers(self) -> set[int]: ...
    def metadata(self, ledger_id: int) -> Seen | None:
        """None: there is no such ledger."""

    def close(self) -> None: ...


class OurClient:
    """This project's client."""

    language = "ours"

    def __init__(self, uri: str, protocol: str, tls: TlsConfig | None = None) -> None:
        self._client = sync.BookKeeper.connect(uri, config=ClientConfig(protocol=protocol, tls=tls))

    def create(self, shape: Shape) -> Writer:
        options: dict[str, Any] = {
            "ensemble": shape.ensemble,
            "write_quorum": shape.write_quorum,
            "ack_quorum": shape.ack_quorum,
            "password": PASSWORD,
            "digest": shape.digest,
            "unsafe_without_digest": shape.digest == "dummy",
            "custom_metadata": shape.custom,
            "ledger_id": shape.ledger_id,
            "deferred_sync": shape.deferred_sync,
            "advanced": shape.advanced,
        }
        return OurWriter(self._client.create_ledger(**options))

    def open(self, ledger_id: int, *, recovery: bool = True) -> Reader:
        return OurReader(self._client.open_ledger(ledger_id, PASSWORD, recovery=recovery))

    def delete(self, ledger_id: int) -> None:
        self._client.delete_ledger(ledger_id)

    def ledgers(self) -> set[int]:
        return set(self._client.list_ledgers())

    def metadata(self, ledger_id: int) -> Seen | None:
        if ledger_id not in self.ledgers():
            return None
        return seen(self._client.metadata(ledger_id))

    def close(self) -> None:
        self._client.close()


def seen(metadata: LedgerMetadata) -> Seen:
    """Our metadata in the words of the matrix."""
    assert metadata.digest_type is not None
    return Seen(
        state=metadata.state.name,
        ensemble=metadata.spec.ensemble_size,
        write_quorum=metadata.spec.write_quorum,
        ack_quorum=metadata.spec.ack_quorum,
        last_entry=metadata.last_entry,
        length=metadata.length,
        digest=metadata.digest_type.name.lower(),
        custom=dict(metadata.custom),
        fragments={fragment.first_entry: tuple(map(str, fragment.ensemble)) for fragment in metadata.fragments},
    )


class OurWriter:
    """Our writer."""

    def __init__(self, handle: sync.WriteHandle) -> None:
        self._handle = handle

    @property
    def id(self) -> int:
        return self._handle.id

    @property
    def confirmed(self) -> int:
        return self._handle.last_add_confirmed

    def append(self, payload: bytes) -> int:
        try:
            return self._handle.append(payload, timeout_s=LONGEST_S)
        except (LedgerFencedError, LedgerClosedError) as error:
            raise FencedError(str(error)) from error

    def append_many(self, payloads: Sequence[bytes]) -> list[int]:
        waiting = [self._handle.append_nowait(payload) for payload in payloads]
        return [int(each.result(LONGEST_S)) for each in waiting]

    def append_at(self, entries: Sequence[tuple[int, bytes]]) -> list[int]:
        assert isinstance(self._handle, sync.AdvancedHandle)
        waiting = [self._handle.append_at_nowait(entry_id, payload) for entry_id, payload in entries]
        return [int(each.result(LONGEST_S)) for each in waiting]

    def force(self) -> None:
        self._handle.force(timeout_s=LONGEST_S)

    def close(self) -> None:
        self._handle.close()

    def abandon(self) -> None:
        self._handle.abandon()


class OurReader:
    """Our reader."""

    def __init__(self, handle: sync.ReadHandle) -> None:
        self._handle = handle

    @property
    def confirmed(self) -> int:
        return self._handle.last_add_confirmed

    @property
    def closed(self) -> bool:
        return self._handle.closed

    @property
    def length(self) -> int:
        return self._handle.length

    def read(self, first: int, last: int) -> list[bytes]:
        return [entry.payload for entry in self._handle.read(first, last)]

    def read_unconfirmed(self, entry_id: int) -> bytes:
        return self._handle.read_unconfirmed(entry_id)

    def read_batch(self, first: int, count: int, size: int) -> list[bytes]:
        return [entry.payload for entry in self._handle.read_batch(first, count_max=count, bytes_max=size)]

    def ask_confirmed(self) -> int:
        return self._handle.read_last_add_confirmed()

    def wait_for(self, entry_id: int, timeout_ms: int) -> bytes | None:
        _, entry = self._handle.read_last_add_confirmed_and_entry(entry_id, timeout_ms=timeout_ms)
        return None if entry is None else entry.payload

    def close(self) -> None:
        self._handle.close()


__all__ = ["BookKeeperError", "Client", "FencedError", "OurClient", "Reader", "Seen", "Shape", "Writer"]
