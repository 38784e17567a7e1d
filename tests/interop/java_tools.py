"""Java's tools on a cluster of our bookies: one function a row; one that returns is green."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from examples.apache_servers import JavaProcess, client_settings, java_command, run_to_end
from examples.apache_servers.settings import write_settings
from tests.integration.processes import until
from tests.interop.apache_shell import shell
from tests.interop.clients import PASSWORD, Client, Shape
from tests.interop.clusters import Bookie, Site
from tests.interop.java_client import Java
from tests.interop.killed import payload
from tests.interop.stories import ANY_STATUS, expect

_LONG_S: Final = 60.0


def _shell(site: Site, *words: str, **options: Any) -> str:
    return shell(*words, uri=site.clusters["ours"].uri, timeout_s=_LONG_S, **options)


def _ours(site: Site) -> Client:
    site.await_whole("ours")
    return site.client("ours", "ours", "v3")


def _ledger(site: Site, count: int = 5, shape: Shape | None = None) -> int:
    """A closed ledger of our client's, with ``entry 0`` to ``entry count - 1``."""
    writer = _ours(site).create(shape or Shape())
    writer.append_many([b"entry %d" % i for i in range(count)])
    writer.close()
    return writer.id


def simpletest(site: Site) -> None:
    """Writes, closes and reads a ledger on all three of an ensemble."""
    _ours(site)
    said = _shell(site, "simpletest", *["-ensemble", "3", "-writeQuorum", "3", "-ackQuorum", "2", "-numEntries", "100"])
    assert re.search(r"100 entries written to ledger \d+. Last entry Id 99", said), said


def bookies(site: Site) -> None:
    """listbookies, endpointinfo, bookieinfo: who is there, where, with how much room."""
    _ours(site)
    listed = _shell(site, "listbookies", "-a")
    info = _shell(site, "bookieinfo")
    for bookie in site.clusters["ours"].bookies:
        assert f"BookieID:{bookie.bookie_id}, IP:127.0.0.1" in listed, listed
        free = re.search(rf"BookieID:{bookie.bookie_id},.*Free: (\d+).*Total: (\d+)", info)
        assert free is not None, info
        assert 0 < int(free[1]) < int(free[2])
    assert "Protocol: bookie-rpc" in _shell(site, "endpointinfo", "-b", "ours-1")


def ledgers(site: Site) -> None:
    """listledgers, ledgermetadata, deleteledger."""
    ledger_id = str(_ledger(site, shape=Shape(custom={"made by": b"us"})))
    assert re.search(rf"ledgerID: {ledger_id}$", _shell(site, "listledgers"), re.MULTILINE)
    said = _shell(site, "ledgermetadata", "-ledgerid", ledger_id)
    assert re.search(r"state=CLOSED, length=35, lastEntryId=4, digestType=CRC32C", said), said
    assert "made by" in said
    _shell(site, "deleteledger", "-ledgerid", ledger_id, "-force")
    assert int(ledger_id) not in _ours(site).ledgers()


def readledger(site: Site) -> None:
    """As a client, and straight from one bookie."""
    ledger_id = _ledger(site)
    metadata = _ours(site).metadata(ledger_id)
    assert metadata is not None
    words = ("readledger", "-ledgerid", str(ledger_id), "-msg", "-fe", "1")
    for more in (("-le", "3"), ("-le", "4", "-bookie", metadata.fragments[0][0])):  # from a bookie: up to, without
        said = _shell(site, *words, *more, expect=ANY_STATUS if "-bookie" in more else 0)
        expect(re.findall(rf"Lid={ledger_id}, Eid=(\d+)", said), ["1", "2", "3"], "entries")
        expect(re.findall(r"entry (\d)", said), ["1", "2", "3"], "their payloads")


def bookiesanity(site: Site) -> None:
    """Writes to and reads from one bookie, that of the configuration."""
    _ours(site)
    assert "Bookie sanity test succeeded" in _shell(site, "bookiesanity", settings={"bookieId": "ours-1"})


def switches(site: Site) -> None:
    """lostbookierecoverydelay, autorecovery, queryautorecoverystatus, listunderreplicated, whatisinstanceid."""
    _shell(site, "lostbookierecoverydelay", "-set", "7")
    assert "LostBookieRecoveryDelay value in ZK: 7" in _shell(site, "lostbookierecoverydelay", "-get")
    _shell(site, "lostbookierecoverydelay", "-set", "1")  # it takes no 0
    assert "re-replication is disabled" in _shell(site, "autorecovery", "-disable")
    assert "Resuming automatic ledger re-replication" in _shell(site, "autorecovery", "-enable")
    assert "No Ledger is being recovered" in _shell(site, "queryautorecoverystatus")
    said = _shell(site, "whatisinstanceid")
    assert re.search(r"InstanceId: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", said), said


@contextmanager
def _one_bookie_dead(site: Site, ledger_id: int) -> Iterator[Bookie]:
    """One of the ledger's bookies killed, all of a time; the others stay."""
    metadata = _ours(site).metadata(ledger_id)
    assert metadata is not None
    victim = site.clusters["ours"][metadata.fragments[0][0]]
    victim.kill()
    try:
        yield victim
    finally:
        victim.launch()
        site.clusters["ours"].coming_back.append(victim)


def recover(site: Site) -> None:
    """By hand: the copies of a dead bookie of ours are brought from our bookies to another of ours."""
    ledger_id = _ledger(site, 50)
    with _one_bookie_dead(site, ledger_id) as victim:
        until(lambda: victim.bookie_id not in site.registered("ours"), 30, "its session to end")
        _shell(site, "recover", "-force", "-ledger", str(ledger_id), victim.bookie_id)
        _moved(site, ledger_id, victim.bookie_id, 50)


def autorecovery(site: Site) -> None:
    """Java's auditor finds a lost bookie of ours, its replicator brings the copies from our bookies to another."""
    ledger_id = _ledger(site, 50)
    directory = site.directory / "autorecovery"
    settings = {
        "bookiePort": 1,
        "advertisedAddress": "127.0.0.1",
        "allowLoopback": True,
        "zkTimeout": 4000,
        "auditorPeriodicBookieCheckInterval": 2,
        "lostBookieRecoveryDelay": 0,
        "rereplicationEntryBatchSize": 100,
        "journalDirectories": directory,
        "ledgerDirectories": directory,
        "reppDnsResolverClass": "org.apache.bookkeeper.net.ScriptBasedMapping",
    }
    configuration = write_settings(directory / "conf", client_settings(site.clusters["ours"].uri, settings))
    main = "org.apache.bookkeeper.replication.AutoRecoveryMain"
    process = JavaProcess("autorecovery", directory, java_command(directory, main, "-c", str(configuration)))
    process.launch()
    try:
        with _one_bookie_dead(site, ledger_id) as victim:
            until(lambda: _away(site, ledger_id, victim.bookie_id), 60, lambda: process.said[-3000:])
            _moved(site, ledger_id, victim.bookie_id, 50)
            until(lambda: not _is_marked(site, ledger_id), 30, "the ledger's mark to go")
    finally:
        process.stop()


def _is_marked(site: Site, ledger_id: int) -> bool:
    """As under-replicated. (Ledgers of four bookies stay so: only three live.)"""
    return re.search(rf" main {ledger_id}$", _shell(site, "listunderreplicated"), re.MULTILINE) is not None


def _away(site: Site, ledger_id: int, bookie_id: str) -> bool:
    metadata = _ours_as_it_is(site).metadata(ledger_id)
    return metadata is not None and bookie_id not in metadata.fragments[0]


def _ours_as_it_is(site: Site) -> Client:
    """Our client, with a bookie of the cluster down."""
    return site.client("ours", "ours", "v3")


def _moved(site: Site, ledger_id: int, bookie_id: str, count: int) -> None:
    """The ledger does without this bookie, and everyone who is named for it has every entry."""
    client = _ours_as_it_is(site)
    metadata = client.metadata(ledger_id)
    assert metadata is not None
    assert bookie_id not in metadata.fragments[0], metadata
    reader = client.open(ledger_id)
    expect(reader.read(0, count - 1), [b"entry %d" % i for i in range(count)], "entries")
    reader.close()
    for bookie in metadata.fragments[0]:
        words = ("-ledgerid", str(ledger_id), "-fe", "0", "-le", str(count), "-bookie", bookie)
        said = _shell(site, "readledger", *words, expect=ANY_STATUS)
        expect(len(re.findall(rf"Lid={ledger_id}, Eid=", said)), count, f"entries on {bookie}")


def benchmark(site: Site) -> None:
    """Apache's own: BenchThroughputLatency writes over v3 and v2, BenchReadThroughputLatency reads it back."""
    _ours(site)
    directory = site.directory / "benchmark"
    address = ("--zookeeper", str(site.zookeeper.address), "--password", PASSWORD.decode())
    package = "org.apache.bookkeeper.benchmark"
    before = _ours(site).ledgers() | {_ledger(site)}  # it takes ledger 0 for none
    for more in ((), ("--useV2",)):
        limits = "--ensemble 3 --quorum 3 --ackQuorum 2 --throttle 1000 --sendlimit 2000 --time 5 --skipwarmup"
        dump = ("--latencyFile", str(directory / "latencies"))
        words = (*address, *limits.split(), *dump, *more)
        status, said = run_to_end(java_command(directory, f"{package}.BenchThroughputLatency", *words), _LONG_S)
        done = re.search(r"(\d+) completions in (\d+) milliseconds: (\d+) ops/sec", said)
        assert status == 0 and done is not None, said[-3000:]
        expect(int(done[1]), 2000, "appends")
    written = sorted(_ours(site).ledgers() - before)
    expect(len(written), 2, "ledgers written by the benchmark")
    for ledger_id in written:
        words = (*address, "--ledger", str(ledger_id), "--ledgerManagerType", "hierarchical", "--batchentries", "0")
        command = java_command(directory, f"{package}.BenchReadThroughputLatency", *words)
        status, said = run_to_end(command, _LONG_S)
        read = re.search(r"Read (\d+) in", said)
        assert status == 0 and read is not None, said[-3000:]
        expect(int(read[1]), 1999, "entries read")  # it begins with entry 1


def distributed_log(site: Site) -> None:
    """DistributedLog's core: a log is created, written, sealed segment by segment, read, and deleted."""
    _ours(site)
    log = _DistributedLog(site.java, f"{site.zookeeper.address}", "/ledgers")
    try:
        log.create("a-log")
        for segment in range(2):
            log.write("a-log", [(segment * 10 + i + 1, payload(segment * 10 + i)) for i in range(10)])
        expect(log.read("a-log", 20), [(i + 1, payload(i)) for i in range(20)], "records")
        log.delete("a-log")
    finally:
        log.close()


class _DistributedLog:
    """A namespace of DistributedLog beside a cluster of bookies."""

    def __init__(self, java: Java, zookeeper: str, ledgers_root: str) -> None:
        self._java = java
        library = java.jvm.org.apache.distributedlog
        uri = java.jvm.java.net.URI.create(f"distributedlog-bk://{zookeeper}/logs")
        binding = library.impl.metadata.BKDLConfig(zookeeper, ledgers_root)
        java.call(lambda: library.metadata.DLMetadata("BKDL", binding).create(uri))
        configuration = library.DistributedLogConfiguration()
        for name, value in {"ensemble-size": 3, "write-quorum-size": 3, "ack-quorum-size": 2}.items():
            configuration.setProperty(name, str(value))
        configuration.setOutputBufferSize(0)
        configuration.setPeriodicFlushFrequencyMilliSeconds(0)
        configuration.setImmediateFlushEnabled(True)
        configuration.setLockTimeout(10)
        configuration.setExplicitTruncationByApplication(False)
        builder = library.api.namespace.NamespaceBuilder.newBuilder().conf(configuration).uri(uri)
        self._namespace = java.call(builder.build)
        self._library = library

    def create(self, name: str) -> None:
        self._java.call(lambda: self._namespace.createLog(name))

    def delete(self, name: str) -> None:
        self._java.call(lambda: self._namespace.deleteLog(name))

    def write(self, name: str, records: list[tuple[int, bytes]]) -> None:
        """A segment: a ledger of its own."""
        log = self._java.call(lambda: self._namespace.openLog(name))
        writer = self._java.call(log.openLogWriter)
        for txid, body in records:
            self._java.call(lambda txid=txid, body=body: writer.write(self._library.LogRecord(txid, body)))
        self._java.call(writer.commit)
        self._java.call(writer.close)
        self._java.call(log.close)

    def read(self, name: str, count: int) -> list[tuple[int, bytes]]:
        log = self._java.call(lambda: self._namespace.openLog(name))
        reader = self._java.call(lambda: log.openLogReader(self._library.DLSN.InitialDLSN))
        found: list[tuple[int, bytes]] = []

        def more() -> bool:
            record = self._java.call(lambda: reader.readNext(True))
            if record is not None:
                found.append((int(record.getTransactionId()), bytes(record.getPayload())))
            return len(found) >= count

        until(more, 30, lambda: f"{count} records: {len(found)}")
        self._java.call(reader.close)
        self._java.call(log.close)
        return found

    def close(self) -> None:
        self._java.call(self._namespace.close)
