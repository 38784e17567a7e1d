"""Test vectors of our own making, for docs/wire-protocol.md: ``python -m tests.bookkeeper.wire.own_vectors``.

Everything in docs/wire-vectors.json is made here, by our codecs, from values that stand here. test_own_vectors.py
compares, reads the frames back, and compares what the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bookkeeper import codec, wire
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import DigestType, LedgerMetadata, QuorumSpec
from bookkeeper.ledger.digest import DigestScheme, mac_key, master_key
from bookkeeper.meta.records import ledger_format
from bookkeeper.meta.records.layout import Layout
from bookkeeper.wire import Dialect, Status
from bookkeeper.wire.availability import encode_availability

PAGE = Path(__file__).resolve().parents[3] / "docs" / "wire-protocol.md"
FILE = PAGE.with_name("wire-vectors.json")

L = LedgerId(42)
PASSWORD = b"open sesame"
KEY = master_key(PASSWORD)
PAYLOADS = (b"first entry", b"", b"third")
SCHEME = DigestScheme(DigestType.CRC32C, PASSWORD)


def sealed(scheme: DigestScheme = SCHEME) -> list[bytes]:
    """The ledger's three entries; each knows that all before it but one are confirmed."""
    length, entries = 0, []
    for entry_id, payload in enumerate(PAYLOADS):
        length += len(payload)
        entries.append(scheme.seal(L, entry_id, max(entry_id - 2, -1), length, payload))
    return entries


ENTRIES = sealed()


def requests() -> Iterator[tuple[str, Dialect, wire.Request, int]]:
    """(name, dialect, request, transaction id)."""
    add = wire.AddEntry(L, EntryId(0), KEY, ENTRIES[0])
    for dialect, name in ((Dialect.V2, "v2"), (Dialect.V3, "v3")):
        yield f"{name} add", dialect, add, 7
        recovery = wire.AddEntry(L, EntryId(0), KEY, ENTRIES[0], recovery=True, priority=wire.HIGH_PRIORITY)
        yield f"{name} recovery add", dialect, recovery, 8
        yield f"{name} read entry 2", dialect, wire.ReadEntry(L, EntryId(2)), 9
        yield f"{name} read last entry", dialect, wire.ReadEntry(L, EntryId(-1)), 10
        yield f"{name} fence", dialect, wire.ReadEntry(L, EntryId(-1), KEY, fence=True), 11
        fencing = wire.ReadEntry(L, EntryId(2), KEY, fence=True, priority=wire.HIGH_PRIORITY)
        yield f"{name} recovery read of entry 2", dialect, fencing, 12
        yield f"{name} auth", dialect, wire.Auth("example", b"token"), 13
    yield "v2 batch read", Dialect.V2, wire.BatchRead(L, EntryId(0), 77, 10, 1 << 20), 0
    v3: list[tuple[str, wire.Request]] = [
        ("add, deferred sync", wire.AddEntry(L, EntryId(0), KEY, ENTRIES[0], deferred_sync=True)),
        ("long poll", wire.ReadEntry(L, EntryId(-1), previous_lac=0, timeout_ms=1000, piggyback=True)),
        ("write LAC", wire.WriteLac(L, 2, KEY, SCHEME.seal_lac(L, 2))),
        ("read LAC", wire.ReadLac(L)),
        ("force", wire.ForceLedger(L)),
        ("bookie info", wire.GetBookieInfo(3)),
        ("list entries", wire.ListEntries(L)),
        ("start TLS", wire.StartTls()),
        ("closing advice", wire.GetBookieInfo(0, closed_ledger=L)),
    ]
    for txn_id, (name, request) in enumerate(v3, 14):
        yield f"v3 {name}", Dialect.V3, request, txn_id


def replies() -> Iterator[tuple[str, wire.RequestHeader, wire.Reply]]:
    """(name, header of the request, reply)."""
    for dialect, name in ((Dialect.V2, "v2"), (Dialect.V3, "v3")):
        add = wire.RequestHeader(dialect, wire.Operation.ADD, 7 if dialect is Dialect.V3 else 0)
        yield f"{name} add: OK", add, wire.AddReply(Status.OK, L, EntryId(0))
        yield f"{name} add: fenced", add, wire.AddReply(Status.FENCED, L, EntryId(0))
        read = wire.RequestHeader(dialect, wire.Operation.READ, 9 if dialect is Dialect.V3 else 0)
        max_lac = 1 if dialect is Dialect.V3 else None
        yield f"{name} read entry 2: OK", read, wire.ReadReply(Status.OK, L, EntryId(2), ENTRIES[2], max_lac)
        yield f"{name} read entry 2: no entry", read, wire.ReadReply(Status.NO_ENTRY, L, EntryId(2))
        yield f"{name} read last entry: OK", read, wire.ReadReply(Status.OK, L, EntryId(-1), ENTRIES[2], max_lac)
    batch = wire.RequestHeader(Dialect.V2, wire.Operation.BATCH_READ)
    body = b"".join(len(entry).to_bytes(4, "big") + entry for entry in ENTRIES)
    yield "v2 batch read: OK", batch, wire.BatchReply(Status.OK, L, EntryId(0), 77, body)
    yield "v2 batch read: no ledger", batch, wire.BatchReply(Status.NO_LEDGER, L, EntryId(0), 77)

    def of(op: wire.Operation, txn_id: int) -> wire.RequestHeader:
        return wire.RequestHeader(Dialect.V3, op, txn_id, 3)

    poll = wire.ReadReply(Status.OK, L, EntryId(1), ENTRIES[1], 1, 1_700_000_000_000)
    yield "v3 long poll: entry 1", of(wire.Operation.READ, 15), poll
    yield "v3 long poll: nothing new", of(wire.Operation.READ, 15), wire.ReadReply(Status.OK, L, EntryId(-1), None, 0)
    yield "v3 write LAC: OK", of(wire.Operation.WRITE_LAC, 16), wire.WriteLacReply(Status.OK, L)
    lac = wire.LacReply(Status.OK, L, SCHEME.seal_lac(L, 2), ENTRIES[2])
    yield "v3 read LAC: OK", of(wire.Operation.READ_LAC, 17), lac
    yield "v3 force: OK", of(wire.Operation.FORCE_LEDGER, 18), wire.ForceReply(Status.OK, L)
    yield "v3 bookie info: OK", of(wire.Operation.BOOKIE_INFO, 19), wire.InfoReply(Status.OK, 1 << 40, 1 << 39)
    held = encode_availability([(0, 2), (5, 5)])
    yield "v3 list entries: 0-2 and 5", of(wire.Operation.LIST_ENTRIES, 20), wire.ListReply(Status.OK, L, held)
    yield "v3 start TLS: OK", of(wire.Operation.START_TLS, 21), wire.StartTlsReply(Status.OK)
    yield "v3 start TLS: refused", of(wire.Operation.START_TLS, 21), wire.BareReply(Status.BAD_REQUEST)
    auth = wire.AuthReply(Status.OK, "AuthDisabledPlugin", b"")
    yield "v3 auth: not needed", of(wire.Operation.AUTH, 13), auth
    yield "v2 auth: not needed", wire.RequestHeader(Dialect.V2, wire.Operation.AUTH), auth


def metadata() -> LedgerMetadata:
    spec = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
    ensemble = [BookieId(f"192.0.2.{n}:3181") for n in (1, 2, 3)]
    return LedgerMetadata.create(spec, ensemble, digest_type=DigestType.CRC32C, password=PASSWORD)


def made() -> dict[str, Any]:
    """The document."""
    digests = {kind.name: sealed(DigestScheme(kind, PASSWORD))[0].hex() for kind in DigestType}
    spec = QuorumSpec(ensemble_size=5, write_quorum=3, ack_quorum=2)
    members = [BookieId(name) for name in "abcde"]
    return {
        "about": "Made by bookkeeper-py (python -m tests.bookkeeper.wire.own_vectors); see docs/wire-protocol.md",
        "ledger": {"id": L, "password": PASSWORD.decode(), "digest": "CRC32C", "payloads": [p.hex() for p in PAYLOADS]},
        "keys": [
            {"password": word, "master_key": master_key(word.encode()).hex(), "mac_key": mac_key(word.encode()).hex()}
            for word in ("", PASSWORD.decode())
        ],
        "entry_0_by_digest": digests,
        "entries": [entry.hex() for entry in ENTRIES],
        "explicit_lac_2": SCHEME.seal_lac(L, 2).hex(),
        "frames": {
            **{name: wire.encode_request(request, dialect, txn).hex() for name, dialect, request, txn in requests()},
            **{name: wire.encode_reply(header, reply).hex() for name, header, reply in replies()},
        },
        "write_sets_e5_qw3": {str(entry): list(spec.write_set(entry, members)) for entry in (0, 1, 3, 4, 7)},
        "metadata": ledger_format.encode(metadata()).hex(),
        "paths": {
            str(ledger): Layout.HIERARCHICAL.ledger_path("/ledgers", LedgerId(ledger))
            for ledger in (0, 42, 2**31 - 2, 2**31 - 1, 1234567890123456789)
        },
    }


def text() -> str:
    """The file."""
    return json.dumps(made(), indent=1) + "\n"


if __name__ == "__main__":
    assert codec.FRAME_MAX == 5 * 1024 * 1024
    FILE.write_text(text())
