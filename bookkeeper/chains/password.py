"""The password of a log's ledgers: random, made with the log's node and kept in it (X18)."""

from __future__ import annotations

from typing import Final

from bookkeeper.seams import Rng

PASSWORD_BYTES: Final = 32


def new_password(rng: Rng) -> bytes:
    """A password that nobody chose: as many random bytes as no one can guess."""
    return rng.getrandbits(8 * PASSWORD_BYTES).to_bytes(PASSWORD_BYTES, "big")
