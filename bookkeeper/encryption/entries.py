"""Seals the entries of one writer, and opens those of one ledger. Both work in runs.

Rules
    X24  A data key belongs to one ledger and one writer, who makes it with the ledger: there is never a second writer
         with this key, whatever becomes of the ledger's metadata or its id. A writer seals entry ids in order, each
         once. What it has sealed is sent again as it is (W8). So no two payloads are ever sealed with one key and
         nonce, also where the outcome of an append is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from bookkeeper.encryption.ciphers import Aead, open_run, seal_run
from bookkeeper.encryption.compression import Compression, pack, unpack
from bookkeeper.errors import check
from bookkeeper.seams import Buffer


class EntrySealer:
    """Seals what one writer appends to one ledger."""

    __slots__ = ("_aead", "_compression", "_ledger_id", "_next")

    def __init__(self, ledger_id: int, aead: Aead, compression: Compression) -> None:
        self._ledger_id = ledger_id
        self._aead = aead
        self._compression = compression
        self._next = 0

    def __repr__(self) -> str:
        return f"<seals entry {self._next} of ledger {self._ledger_id} next>"

    def seal(self, first: int, payloads: Sequence[Buffer]) -> list[bytes]:
        """The entries ``first``, ``first + 1``, ... as they are stored.

        Raises: InvariantError: one of them was sealed before, or one before them was not (X24). Nothing was sealed.
        """
        check(first == self._next, "X24", f"entry {first} is to be sealed, and entry {self._next} is next")
        self._next = first + len(payloads)
        if self._compression is not Compression.NONE:
            payloads = [pack(self._compression, payload) for payload in payloads]
        return seal_run(self._aead, self._ledger_id, first, payloads, _packed_by(self._compression))


class EntryOpener:
    """Opens entries of one ledger."""

    __slots__ = ("_aead", "_compression", "_ledger_id", "_payload_max")

    def __init__(self, ledger_id: int, aead: Aead, compression: Compression, payload_max: int) -> None:
        self._ledger_id = ledger_id
        self._aead = aead
        self._compression = compression
        self._payload_max = payload_max
        """Bytes of a payload at most: nothing larger is unpacked."""

    def open(self, first: int, sealed: Sequence[Buffer]) -> list[bytes]:
        """The payloads of the entries ``first``, ``first + 1``, ....

        Raises: DecryptionError: one of them is not what the ledger's writer has sealed.
        """
        opened = open_run(self._aead, self._ledger_id, first, sealed, _packed_by(self._compression))
        if self._compression is not Compression.NONE:
            return [unpack(self._compression, packed, self._payload_max) for packed in opened]
        return opened


def _packed_by(compression: Compression) -> bytes:
    """What vouches for how payloads are packed: who writes the metadata cannot have them unpacked in another way."""
    return b"" if compression is Compression.NONE else compression.name.lower().encode()
