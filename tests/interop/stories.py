"""One function a row of the matrix: what is done, and what must have come of it. A story that returns is green.

``stage.client`` is the client of the column; ``stage.other`` speaks the other language over the same protocol. Where
one writes, the other reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import BookKeeperError
from bookkeeper.launchers.machine_speed import stretch
from tests.integration.processes import until
from tests.interop.clients import Client, FencedError, Reader, Shape, Writer
from tests.interop.clusters import Bookie, Bookies, Kind, Site
from tests.interop.java_client import JavaError
from tests.interop.killed import ACKNOWLEDGED, killed_writer, payload

PLAIN: Final = Shape()
STRIPED: Final = Shape(ensemble=4, write_quorum=2, ack_quorum=2)
LARGE: Final = 5 * 1024 * 1024 - 4096
"""A bookie of either kind takes frames of 5 MiB, headers included."""

SILENT_AT_MOST: Final = 2
"""How often in one story Java's writer may keep its last add confirmed to itself. It needs a delay at one place of its
timer; a bookie that loses explicit last add confirmeds shows it every time."""

ANY_STATUS: Final = None
"""Of Apache's ``readledger -bookie``: after the last entry it stops its threads before its connections, whose close may
then fail with "Executor is shutting down", and with it the whole command. What it has printed is there."""

_GIVEN_IDS = itertools.count(5_000_000_000, 7)
"""Above 2**31: the path of such a ledger is another one."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a story is played."""

    site: Site
    language: Kind
    bookies: Bookies
    protocol: str

    @property
    def other_language(self) -> Kind:
        return "java" if self.language == "ours" else "ours"

    @property
    def client(self) -> Client:
        return self.site.client(self.language, self.bookies, self.protocol)

    @property
    def other(self) -> Client:
        return self.site.client(self.other_language, self.bookies, self.protocol)

    @property
    def both(self) -> tuple[Client, Client]:
        return self.client, self.other


def expect(found: object, wanted: object, what: str) -> None:
    """Raises: AssertionError, with both."""
    assert found == wanted, f"{what}: {_short(found)} instead of {_short(wanted)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:120]}... ({len(text)} characters)"


def read_by_both(
    stage: Stage, ledger_id: int, payloads: Sequence[bytes], clients: Sequence[Client] = (), *, length: bool = True
) -> None:
    """The ledger is closed with these entries, whoever asks, and both see the same metadata.

    ``length``: the ledger's length is that of its entries, which Java's recovery does not promise: it may take another
    entry's (docs/compatibility.md, R12).
    """
    seen = []
    for client in clients or stage.both:
        reader = client.open(ledger_id)
        who = f"read by {client.language}"
        expect((reader.closed, reader.confirmed), (True, len(payloads) - 1), f"{who}: closed, last entry")
        if length:
            expect(reader.length, sum(map(len, payloads)), f"{who}: length")
        if payloads:
            expect(reader.read(0, len(payloads) - 1), list(payloads), f"{who}: entries")
        reader.close()
        seen.append(client.metadata(ledger_id))
    expect(seen[0], seen[-1], "metadata")


def _some(count: int) -> list[bytes]:
    return [payload(i) for i in range(count)]


def _write(writer: Writer, payloads: Sequence[bytes]) -> None:
    expect(writer.append_many(payloads), list(range(len(payloads))), "ids of the entries")


def write_close_read(stage: Stage, shape: Shape = PLAIN) -> None:
    """Written by one; read by both."""
    writer = stage.client.create(shape)
    payloads = _some(100)
    _write(writer, payloads)
    expect(writer.append(b"one more"), 100, "id of an entry")
    writer.close()
    read_by_both(stage, writer.id, [*payloads, b"one more"])


def striped(stage: Stage) -> None:
    """Write sets that are parts of the ensemble."""
    write_close_read(stage, STRIPED)


def crc32(stage: Stage) -> None:
    write_close_read(stage, Shape(digest="crc32"))


def crc32c(stage: Stage) -> None:
    write_close_read(stage, Shape(digest="crc32c"))


def hmac(stage: Stage) -> None:
    write_close_read(stage, Shape(digest="hmac"))


def dummy(stage: Stage) -> None:
    write_close_read(stage, Shape(digest="dummy"))


def given_id(stage: Stage) -> None:
    """A ledger id of the application's choice, of more than 31 bits."""
    ledger_id = next(_GIVEN_IDS)
    advanced = stage.language == "java"  # Java takes an id only for ledgers whose entry ids are given, too
    writer = stage.client.create(Shape(ledger_id=ledger_id, advanced=advanced))
    expect(writer.id, ledger_id, "id of the ledger")
    if advanced:
        writer.append_at([(0, b"first")])
    else:
        writer.append(b"first")
    writer.close()
    read_by_both(stage, ledger_id, [b"first"])


def open_without_recovery(stage: Stage) -> None:
    """The other looks into a ledger that is being written, and does not disturb."""
    writer = stage.client.create(Shape())
    _write(writer, _some(10))
    writer.append(b"last")
    reader = stage.other.open(writer.id, recovery=False)
    expect(reader.closed, False, "closed")
    assert reader.confirmed >= 9, reader.confirmed
    expect(reader.read(0, 9), _some(10), "entries")
    expect(reader.read_unconfirmed(10), b"last", "an entry past the last add confirmed")
    reader.close()
    expect(writer.append(b"undisturbed"), 11, "id of an entry")
    writer.close()
    read_by_both(stage, writer.id, [*_some(10), b"last", b"undisturbed"])


def tail(stage: Stage) -> None:
    """The other waits for every entry by long poll, and has each soon after it was written.

    Java's writer may keep its newest last add confirmed to itself until it appends again (docs/compatibility.md). Then
    it appends one entry more, and the reader waits on.
    """
    writer = stage.client.create(Shape())
    written, begun = 0, 0
    if stage.other_language == "java":
        # A Java bookie answers "no such ledger" until it has an entry, and Java's client passes that on.
        writer.append(payload(0))
        written, begun = 1, 1
    reader = stage.other.open(writer.id, recovery=False)
    with ThreadPoolExecutor(1) as waiting:
        for entry_id in range(begun, 10):
            arrives = waiting.submit(_arrives, reader, entry_id)
            while written <= entry_id or (stage.language == "java" and not _done_within(arrives, 5)):
                writer.append(payload(written))
                written += 1
            expect(arrives.result(30 * stretch()), payload(entry_id), f"entry {entry_id}, waited for")
    assert written <= 10 + SILENT_AT_MOST, f"Java's writer was silent {written - 10} times"
    reader.close()
    writer.close()
    read_by_both(stage, writer.id, _some(written))


def _arrives(reader: Reader, entry_id: int) -> bytes:
    """A poll may end with news of the last add confirmed alone (L9): then the next one is due."""
    return until(lambda: reader.wait_for(entry_id, 2000) or b"", 20, f"entry {entry_id}")


def _done_within(arrives: Future[bytes], seconds: float) -> bool:
    return bool(wait([arrives], seconds).done)


def tail_by_asking(stage: Stage) -> None:
    """The other asks for the last add confirmed, which rides in the next entry, and reads what it may."""
    writer = stage.client.create(Shape())
    reader = stage.other.open(writer.id, recovery=False)
    writer.append(payload(0))
    for entry_id in range(10):
        writer.append(payload(entry_id + 1))
        _await_confirmed(reader, entry_id)
        expect(reader.read(entry_id, entry_id), [payload(entry_id)], f"entry {entry_id}")
    reader.close()
    writer.close()
    read_by_both(stage, writer.id, _some(11))


def _await_confirmed(reader: Reader, entry_id: int) -> None:
    until(lambda: reader.ask_confirmed() >= entry_id, 10, f"entry {entry_id} confirmed")


def advanced(stage: Stage) -> None:
    """Entry ids of the application's choice: out of order in, acknowledged all the same, read in order."""
    writer = stage.client.create(Shape(advanced=True))
    order = [2, 0, 1, 5, 4, 3, 9, 8, 7, 6]
    expect(writer.append_at([(i, payload(i)) for i in order]), order, "ids as answered")
    writer.close()
    read_by_both(stage, writer.id, _some(10))


def deferred_sync(stage: Stage) -> None:
    """The last add confirmed stays until force(), for the writer and for the other one."""
    writer = stage.client.create(Shape(deferred_sync=True))
    _write(writer, _some(10))
    expect(writer.confirmed, -1, "last add confirmed before force()")
    reader = stage.other.open(writer.id, recovery=False)
    expect(reader.ask_confirmed(), -1, "last add confirmed before force(), asked by the other")
    writer.force()
    expect(writer.confirmed, 9, "last add confirmed after force()")
    writer.append(b"carries it")
    until(lambda: reader.ask_confirmed() == 9, 10, "last add confirmed after force(), asked by the other")
    reader.close()
    writer.force()
    writer.close()
    read_by_both(stage, writer.id, [*_some(10), b"carries it"])


def batch_read(stage: Stage) -> None:
    """Written by the other; read in batches limited by count and by size."""
    writer = stage.other.create(Shape())
    payloads = [b"%d" % i * 300 for i in range(60)]
    _write(writer, payloads)
    writer.close()
    reader = stage.client.open(writer.id)
    first = reader.read_batch(0, 7, 1024 * 1024)
    expect(first, payloads[:7], "limited by count")
    few = reader.read_batch(0, 60, 2000)
    assert 1 <= len(few) < 10, f"limited by size: {len(few)} entries"
    found: list[bytes] = []
    while len(found) < 60:
        found += reader.read_batch(len(found), 60, 8192)
    expect(found, payloads, "all of them")
    reader.close()


def fencing(stage: Stage) -> None:
    """The other takes a ledger over whose writer lives: nothing that was acknowledged is lost, nothing more goes in."""
    writer = stage.client.create(Shape())
    _write(writer, _some(30))
    stage.other.open(writer.id).close()
    try:
        writer.append(b"too late")
    except FencedError:
        pass
    else:
        raise AssertionError("the fenced writer has had an append acknowledged")
    read_by_both(stage, writer.id, _some(30), length=stage.other_language == "ours")


def recovery(stage: Stage) -> None:
    """The writer is killed in the middle of its work; the other closes the ledger and has all that was acknowledged."""
    ledger_id = killed_writer(stage.site, stage.language, stage.bookies, stage.protocol)
    reader = stage.other.open(ledger_id)
    last = reader.confirmed
    assert last >= ACKNOWLEDGED - 1, f"closed at {last}, and {ACKNOWLEDGED - 1} was acknowledged"
    reader.close()
    read_by_both(stage, ledger_id, _some(last + 1), length=stage.other_language == "ours")


def our_bookie_dies(stage: Stage) -> None:
    _bookie_dies(stage, "ours")


def java_bookie_dies(stage: Stage) -> None:
    _bookie_dies(stage, "java")


def _bookie_dies(stage: Stage, kind: Kind) -> None:
    """kill -9 while a ledger is written: another bookie takes its place and nothing is lost."""
    cluster = stage.site.clusters[stage.bookies]
    writer = stage.client.create(Shape())
    _write(writer, _some(20))
    before = stage.other.metadata(writer.id)
    assert before is not None
    victim = next(cluster[bookie] for bookie in before.fragments[0] if cluster[bookie].kind == kind)
    with dead(stage, victim):
        for i in range(20, 40):
            expect(writer.append(payload(i)), i, "id of an entry")
        until(lambda: victim.bookie_id not in _ensemble(stage, writer.id), 20, "another ensemble")
        writer.close()
        read_by_both(stage, writer.id, _some(40))


def _ensemble(stage: Stage, ledger_id: int) -> tuple[str, ...]:
    """The ensemble of the last fragment, as the other reads it."""
    metadata = stage.other.metadata(ledger_id)
    assert metadata is not None
    return metadata.fragments[max(metadata.fragments)]


@contextmanager
def dead(stage: Stage, bookie: Bookie) -> Iterator[None]:
    """A bookie killed for the time being; the next cell on this cluster waits until it is back."""
    bookie.kill()
    try:
        yield
    finally:
        bookie.launch()
        stage.site.clusters[stage.bookies].coming_back.append(bookie)


def delete_and_list(stage: Stage) -> None:
    """Each lists what the other made, and misses what the other deleted."""
    ledgers = []
    for client in (stage.client, stage.other, stage.client):
        writer = client.create(Shape())
        writer.append(b"short-lived")
        writer.close()
        ledgers.append(writer.id)
    for client in stage.both:
        assert set(ledgers) <= client.ledgers(), client.language
    stage.client.delete(ledgers[0])
    stage.client.delete(ledgers[1])
    stage.other.delete(ledgers[2])
    for client in stage.both:
        expect(set(ledgers) & client.ledgers(), set(), f"listed by {client.language}")
        expect(client.metadata(ledgers[1]), None, f"metadata read by {client.language}")


def explicit_lac(stage: Stage) -> None:
    """A silent writer makes its last add confirmed known without another entry.

    Asked over v3: a Java client over v2 hears only of what entries carry. Java's writer may miss it (see ``tail``);
    then another ledger is tried.
    """
    for attempts_left in range(SILENT_AT_MOST if stage.language == "java" else 0, -1, -1):
        writer = stage.client.create(Shape())
        _write(writer, _some(3))
        reader = stage.site.client(stage.other_language, stage.bookies, "v3").open(writer.id, recovery=False)
        try:
            until(lambda: reader.ask_confirmed() == 2, 10, "the last add confirmed without another entry")  # noqa: B023
        except AssertionError:
            if not attempts_left:
                raise
            reader.close()
            writer.close()
            continue
        break
    expect(reader.read(0, 2), _some(3), "entries")
    reader.close()
    writer.close()
    read_by_both(stage, writer.id, _some(3))


def custom_metadata(stage: Stage) -> None:
    """Kept byte for byte, also when the other rewrites the ledger's metadata."""
    custom = {"application": b"interop", "empty": b"", "bytes": bytes(range(256)), "ключ": "значение".encode()}
    writer = stage.client.create(Shape(custom=custom))
    writer.append(b"entry")
    for client in stage.both:
        seen = client.metadata(writer.id)
        assert seen is not None
        expect(seen.custom, custom, f"seen by {client.language}")
    stage.other.open(writer.id).close()
    for client in stage.both:
        seen = client.metadata(writer.id)
        assert seen is not None
        expect((seen.state, seen.custom), ("CLOSED", custom), f"after the other's recovery, seen by {client.language}")
    writer.abandon()


def tls(stage: Stage) -> None:
    """Everything between clients and bookies encrypted, after START_TLS; a client that trusts others gets nowhere."""
    site = stage.site
    client = site.client(stage.language, stage.bookies, stage.protocol, tls=True)
    other = site.client(stage.other_language, stage.bookies, stage.protocol, tls=True)
    writer = client.create(Shape())
    _write(writer, _some(50))
    _nothing_from_strangers(stage, writer.id)
    reader = other.open(writer.id)
    expect(reader.read(0, 49), _some(50), "entries")
    reader.close()
    try:
        writer.append(b"too late")
    except FencedError:
        pass
    else:
        raise AssertionError("the fenced writer has had an append acknowledged")
    read_by_both(stage, writer.id, _some(50), (client, other), length=stage.other_language == "ours")


def _nothing_from_strangers(stage: Stage, ledger_id: int) -> None:
    """Which also shows that there is a handshake at all. (Reads, for Java's appends are tried again without end.)"""
    strict = stage.site.new_client(stage.language, stage.bookies, stage.protocol, tls=True, trusts=stage.site.strangers)
    try:
        strict.open(ledger_id, recovery=False).read_unconfirmed(0)
    except (BookKeeperError, JavaError):
        return
    finally:
        strict.close()
    raise AssertionError("an entry came from bookies whose certificates are not trusted")


def large_and_empty(stage: Stage) -> None:
    """Entries of no bytes, of one, and of as many as fit."""
    payloads = [b"", b"x", b"", bytes(1024) * 1024, b"\xff" * LARGE, b""]
    writer = stage.client.create(Shape())
    for entry_id, each in enumerate(payloads):
        expect(writer.append(each), entry_id, "id of an entry")
    writer.close()
    read_by_both(stage, writer.id, payloads)


def empty_ledger(stage: Stage) -> None:
    """Closed without an entry, and recovered without an entry."""
    closed = stage.client.create(Shape())
    closed.close()
    read_by_both(stage, closed.id, [])
    left = stage.client.create(Shape())
    stage.other.open(left.id).close()
    read_by_both(stage, left.id, [])
    left.abandon()
