"""The four digests of entries, and the keys that a password becomes.

    CRC32    8 bytes   zlib's CRC-32 as a big-endian long
    HMAC    20 bytes   HMAC-SHA1 under SHA1("mac" + password)
    CRC32C   4 bytes   Castagnoli's CRC-32, big-endian
    DUMMY    0 bytes   nothing is checked

A digest is computed over the header (or an explicit LAC blob's two numbers) followed by the payload. Every
digest type derives the same *master key* from the password, which bookies store and compare.
CRC32C comes from the ``crc32c`` package; where it is missing, ``crcmod`` computes the same, slowly.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from bookkeeper.errors import DigestMismatchError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger.entry import HEADER, HEADER_SIZE, LAC_BLOB, Entry
from bookkeeper.seams import Buffer


class DigestType(IntEnum):
    """Numbers as in ledger metadata."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


def _crcmod_crc32c() -> Callable[[Buffer, int], int]:
    """Checksum ``data``, going on from ``crc``: by crcmod, which checks nothing but bytes."""
    import crcmod.predefined

    update = crcmod.predefined.mkPredefinedCrcFun("crc-32c")

    def crc32c(data: Buffer, crc: int = 0) -> int:
        result: int = update(bytes(data), crc)
        return result

    return crc32c


def _fastest_crc32c() -> Callable[[Buffer, int], int]:
    try:
        import crc32c
    except ImportError:
        return _crcmod_crc32c()
    return crc32c.crc32c


def _load_crc32c() -> None:
    """Import the library and use its function. This happens when a scheme needs it, and not with the first checksum:
    that may be computed on a loop in the background while another thread forks, and the child would keep a
    half-imported library for ever. A bookie never needs it."""
    global crc32c
    if crc32c is _first_crc32c:
        crc32c = _fastest_crc32c()


def _first_crc32c(data: Buffer, crc: int) -> int:
    _load_crc32c()
    return crc32c(data, crc)


crc32c: Callable[[Buffer, int], int] = _first_crc32c
"""``crc32c(data, crc_so_far)``: CRC-32C (start with 0). Not to be imported by name: it changes once."""


def master_key(password: bytes) -> bytes:
    """The 20 bytes that bookies compare, whatever the digest type."""
    return hashlib.sha1(b"ledger" + password).digest()


def mac_key(password: bytes) -> bytes:
    """The 20 bytes under which HMAC digests are made."""
    return hashlib.sha1(b"mac" + password).digest()


def _crc32_digest(header: Buffer, payload: Buffer) -> bytes:
    return struct.pack(">Q", zlib.crc32(payload, zlib.crc32(header)))


def _crc32c_digest(header: Buffer, payload: Buffer) -> bytes:
    return struct.pack(">I", crc32c(payload, crc32c(header, 0)))


def _no_digest(header: Buffer, payload: Buffer) -> bytes:
    return b""


_SIZES: Final = {DigestType.CRC32: 8, DigestType.HMAC: 20, DigestType.CRC32C: 4, DigestType.DUMMY: 0}


class DigestScheme:
    """How the entries of one ledger are sealed and checked.

    ``size`` is the digest's, in bytes; ``overhead`` that of header and digest together.
    """

    __slots__ = ("_mac_key", "compute", "digest_type", "master_key", "overhead", "size")

    compute: Callable[[Buffer, Buffer], bytes]
    """``compute(header, payload)``: the digest's bytes, ready for the wire."""

    def __init__(self, digest_type: DigestType, password: bytes) -> None:
        self.digest_type = digest_type
        self.size = _SIZES[digest_type]
        self.overhead = HEADER_SIZE + self.size
        self.master_key = master_key(password)
        self._mac_key = mac_key(password)
        match digest_type:
            case DigestType.CRC32:
                self.compute = _crc32_digest
            case DigestType.HMAC:
                self.compute = self._hmac_digest
            case DigestType.CRC32C:
                _load_crc32c()
                self.compute = _crc32c_digest
            case DigestType.DUMMY:
                self.compute = _no_digest

    def __repr__(self) -> str:
        return f"DigestScheme({self.digest_type.name})"

    @property
    def mac_key(self) -> bytes:
        """The key of HMAC digests (not shown by repr)."""
        return self._mac_key

    def _hmac_digest(self, header: Buffer, payload: Buffer) -> bytes:
        mac = hmac.new(self._mac_key, header, "sha1")
        mac.update(payload)
        return mac.digest()

    def _matches(self, found: Buffer, header: Buffer, payload: Buffer) -> bool:
        return hmac.compare_digest(bytes(found), self.compute(header, payload))

    # -- entries ----------------------------------------------------------------------------------------

    def seal(self, ledger_id: int, entry_id: int, last_add_confirmed: int, length: int, payload: Buffer) -> bytes:
        """A whole entry. ``length`` counts the ledger's payload bytes up to and including this payload."""
        header = HEADER.pack(ledger_id, entry_id, last_add_confirmed, length)
        return b"".join((header, self.compute(header, payload), payload))

    def unseal(self, packet: Buffer, ledger_id: int, entry_id: int | None) -> Entry:
        """Check an entry's digest and ids (L5). With ``entry_id`` None any entry is right, as for "the last entry".

        Raises:
            DigestMismatchError: the packet is too short, or has another digest, ledger or entry id.
        """
        if len(packet) < self.overhead:
            raise DigestMismatchError(
                f"an entry has {len(packet)} bytes, but its header and digest alone have {self.overhead}"
            )
        view = memoryview(packet)
        payload = view[self.overhead :]
        if not self._matches(view[HEADER_SIZE : self.overhead], view[:HEADER_SIZE], payload):
            which = "the last entry" if entry_id is None else f"entry {entry_id}"
            raise DigestMismatchError(f"the {self.digest_type.name} digest of {which} of ledger {ledger_id} is wrong")
        found_ledger, found_entry, lac, length = HEADER.unpack_from(packet)
        if found_ledger != ledger_id or (entry_id is not None and found_entry != entry_id):
            raise DigestMismatchError(
                f"the bookie sent entry {found_entry} of ledger {found_ledger} instead of "
                + ("the last entry" if entry_id is None else f"entry {entry_id}")
                + f" of ledger {ledger_id}"
            )
        return Entry(LedgerId(found_ledger), EntryId(found_entry), EntryId(lac), length, bytes(payload))

    def verify(self, packet: Buffer, ledger_id: int, entry_id: int | None) -> bytes:
        """The payload of an entry that passed :meth:`unseal`."""
        return self.unseal(packet, ledger_id, entry_id).payload

    # -- explicit last add confirmed --------------------------------------------------------------------

    def seal_lac(self, ledger_id: int, last_add_confirmed: int) -> bytes:
        """The blob that carries a last add confirmed without an entry."""
        numbers = LAC_BLOB.pack(ledger_id, last_add_confirmed)
        return numbers + self.compute(numbers, b"")

    def unseal_lac(self, blob: Buffer, ledger_id: int) -> EntryId:
        """The last add confirmed that a blob carries.

        Raises:
            DigestMismatchError: the blob has another size, digest or ledger.
        """
        view = memoryview(blob)
        numbers, digest = view[: LAC_BLOB.size], view[LAC_BLOB.size :]
        if len(blob) != LAC_BLOB.size + self.size or not self._matches(digest, numbers, b""):
            raise DigestMismatchError(f"an explicit last add confirmed of ledger {ledger_id} is damaged")
        found_ledger, last_add_confirmed = LAC_BLOB.unpack(numbers)
        if found_ledger != ledger_id:
            raise DigestMismatchError(
                f"the bookie sent the last add confirmed of ledger {found_ledger} instead of ledger {ledger_id}"
            )
        return EntryId(last_add_confirmed)
