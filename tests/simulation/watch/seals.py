"""What is sealed in a world, watched from outside: by all writers together, whatever they believe.

X24  under one key and nonce one payload is sealed, and no other; what a bookie is sent of an encrypted ledger is
     something that was sealed for this ledger and id
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import bookkeeper.encryption.ledger_keys as ledger_keys
from bookkeeper.encryption.ciphers import Aead, Cipher, new_aead
from bookkeeper.seams import Buffer
from bookkeeper.testing.patches import patches

_REAL: Final = new_aead


class SealMonitor:
    """Remembers a hash of every payload, by key and nonce."""

    def __init__(self, problem: Callable[[str, object], None], count: Callable[[str], None]) -> None:
        self._problem, self._count = problem, count
        self._sealed: dict[tuple[bytes, bytes], bytes] = {}

    def on_sealed(self, key: bytes, nonce: bytes, payload: Buffer, place: bytes) -> None:
        """A payload is sealed, whoever does it."""
        self._count("entries sealed")
        told = hashlib.sha256(place + payload).digest()
        if self._sealed.setdefault((key, nonce), told) != told:
            entry = int.from_bytes(nonce, "big")
            self._problem("X24", f"another payload is sealed under the key and nonce of entry {entry}")


class _WatchedAead:
    """A production cipher that cannot seal anything unseen."""

    def __init__(self, cipher: Cipher, key: bytes, monitor: SealMonitor) -> None:
        self._aead: Aead = _REAL(cipher, key)
        self._key, self._monitor = hashlib.sha256(key).digest(), monitor

    def encrypt(self, nonce: bytes, data: Buffer, associated_data: bytes) -> bytes:
        self._monitor.on_sealed(self._key, nonce, data, associated_data)
        return self._aead.encrypt(nonce, data, associated_data)

    def decrypt(self, nonce: bytes, data: Buffer, associated_data: bytes) -> bytes:
        return self._aead.decrypt(nonce, data, associated_data)


@contextmanager
def watched_seals(problem: Callable[[str, object], None], count: Callable[[str], None]) -> Iterator[SealMonitor]:
    """Every cipher that a client makes until the end of the block is watched."""
    monitor = SealMonitor(problem, count)

    def watched(cipher: Cipher, key: bytes) -> Any:
        return _WatchedAead(cipher, key, monitor)

    with patches() as patch:
        patch(ledger_keys, "new_aead", watched)
        yield monitor
