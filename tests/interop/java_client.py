"""Apache's Java client, driven through Py4J: thin wrappers with the words of ``clients``.

One Java process is enough for all clients of a run. It listens on loopback and asks for a token. Nothing of Python
runs inside Java's threads: calls go one way, and whatever may take long ends after ``LONGEST_S``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from py4j.finalizer import ThreadSafeFinalizer
from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path, is_instance_of
from py4j.protocol import Py4JJavaError

from examples.apache_servers import QUICK_START, JavaProcess, client_settings, java_command
from tests.interop.clients import LONGEST_S, PASSWORD, FencedError, Reader, Seen, Shape, Writer

_READY: Final = "py4j is ready"
_MAIN: Final = "py4j.GatewayServer"
_OPENS: Final = "--add-opens=java.base/java.util=ALL-UNNAMED"
_DIGESTS: Final = {"crc32": "CRC32", "crc32c": "CRC32C", "hmac": "MAC", "dummy": "DUMMY"}
_FENCED: Final = (-101, -11)
"""BKException codes: fenced; closed (what a writer hears whose ensemble change meets a closed ledger)."""


class JavaError(Exception):
    """What a Java call has thrown: the class and message of the innermost cause, and BKException's code."""

    def __init__(self, code: int | None, name: str, text: str) -> None:
        super().__init__(f"{name}{f' ({code})' if code is not None else ''}: {text}")
        self.code = code
        self.name = name


class Java:
    """A Java process with Apache's classes, and Py4J's gateway into it. All methods block."""

    def __init__(self, directory: Path, *, more_options: Sequence[str] = ()) -> None:
        """``more_options`` are further arguments of the JVM."""
        options = (*QUICK_START, _OPENS, *more_options)
        arguments = ("--enable-auth", "0")
        command = java_command(
            directory, _MAIN, *arguments, options=options, more_jars=(find_jar_path(),), level="WARN"
        )
        self.process = JavaProcess("java-client", directory, command)
        self.process.launch()
        self.process.wait_until(lambda: len(self.process.said.split()) >= 2, "listening", quiet_s=LONGEST_S)
        port, token = self.process.said.split()[:2]
        parameters = GatewayParameters(port=int(port), auth_token=token, auto_convert=False, auto_field=True)
        self.gateway = JavaGateway(gateway_parameters=parameters)
        self.jvm = self.gateway.jvm
        self._seconds = self.jvm.java.util.concurrent.TimeUnit.SECONDS

    def get(self, future: Any) -> Any:
        """What a CompletableFuture ends with.

        Raises:
            JavaError: what it failed with, or a TimeoutException.
        """
        return self.call(lambda: future.get(int(LONGEST_S), self._seconds))

    def call(self, work: Any) -> Any:
        """Run it and translate what Java throws.

        Raises:
            JavaError: the innermost cause.
        """
        try:
            return work()
        except Py4JJavaError as error:
            raise self._error(error) from error

    def map_of(self, values: Mapping[str, Any]) -> Any:
        """A java.util.Map."""
        made = self.jvm.java.util.HashMap()
        for key, value in values.items():
            made.put(key, value)
        return made

    def stop(self) -> None:
        """End the process. Idempotent."""
        self.gateway.close()
        self.kill()

    def kill(self) -> None:
        """kill -9. Objects of Java's that Python still has are forgotten quietly, for nobody is left to be told."""
        self.process.kill()
        self.gateway.close()
        ThreadSafeFinalizer.clear_finalizers(clear_all=True)

    def _error(self, error: Py4JJavaError) -> JavaError:
        cause = error.java_exception
        while (deeper := cause.getCause()) is not None:
            cause = deeper
        name = str(cause.getClass().getSimpleName())
        is_coded = is_instance_of(self.gateway, cause, "org.apache.bookkeeper.client.api.BKException")
        return JavaError(int(cause.getCode()) if is_coded else None, name, str(cause.getMessage()))


class JavaClient:
    """One org.apache.bookkeeper.client.BookKeeper."""

    language = "java"

    def __init__(self, java: Java, uri: str, protocol: str, settings: Mapping[str, object] | None = None) -> None:
        self._java = java
        configuration = java.jvm.org.apache.bookkeeper.conf.ClientConfiguration()
        ours: dict[str, object] = {
            "throttle": 0,
            "useV2WireProtocol": protocol == "v2",
            "explicitLacInterval": 20,
            "numWorkerThreads": 2,
            "numIOThreads": 2,
        }
        for name, value in client_settings(uri, {**ours, **(settings or {})}).items():
            configuration.setProperty(name, str(value).lower() if isinstance(value, bool) else str(value))
        self._client = java.call(lambda: java.jvm.org.apache.bookkeeper.client.BookKeeper(configuration))
        self._admin = java.jvm.org.apache.bookkeeper.client.BookKeeperAdmin(self._client)
        self._digests = java.jvm.org.apache.bookkeeper.client.api.DigestType

    def create(self, shape: Shape) -> Writer:
        operation = (
            self._client.newCreateLedgerOp()
            .withEnsembleSize(shape.ensemble)
            .withWriteQuorumSize(shape.write_quorum)
            .withAckQuorumSize(shape.ack_quorum)
            .withPassword(PASSWORD)
            .withDigestType(getattr(self._digests, _DIGESTS[shape.digest]))
        )
        if shape.custom is not None:
            operation = operation.withCustomMetadata(self._java.map_of(shape.custom))
        if shape.deferred_sync:
            flags = self._java.jvm.org.apache.bookkeeper.client.api.WriteFlag
            operation = operation.withWriteFlags(self._java.jvm.java.util.EnumSet.of(flags.DEFERRED_SYNC))
        if shape.advanced or shape.ledger_id is not None:
            operation = operation.makeAdv()
        if shape.ledger_id is not None:
            operation = operation.withLedgerId(shape.ledger_id)
        return JavaWriter(self._java, self._java.get(operation.execute()))

    def open(self, ledger_id: int, *, recovery: bool = True) -> Reader:
        operation = self._client.newOpenLedgerOp().withLedgerId(ledger_id).withPassword(PASSWORD)
        return JavaReader(self._java, self._java.get(operation.withRecovery(recovery).execute()))

    def delete(self, ledger_id: int) -> None:
        self._java.get(self._client.newDeleteLedgerOp().withLedgerId(ledger_id).execute())

    def ledgers(self) -> set[int]:
        listed = self._java.call(self._admin.listLedgers().iterator)
        found = set()
        while listed.hasNext():
            found.add(int(listed.next()))
        return found

    def metadata(self, ledger_id: int) -> Seen | None:
        manager = self._client.getLedgerManager()
        try:
            return seen(self._java.get(manager.readLedgerMetadata(ledger_id)).getValue())
        except JavaError as error:
            if error.code in (-7, -25):
                return None
            raise

    def close(self) -> None:
        self._java.call(self._admin.close)
        self._java.call(self._client.close)


def seen(metadata: Any) -> Seen:
    """Java's LedgerMetadata in the words of the matrix."""
    fragments = {}
    for entry in metadata.getAllEnsembles().entrySet():
        fragments[int(entry.getKey())] = tuple(str(bookie.toString()) for bookie in entry.getValue())
    custom = {str(key): bytes(metadata.getCustomMetadata()[key]) for key in metadata.getCustomMetadata()}
    digest = str(metadata.getDigestType().toString())
    return Seen(
        state=str(metadata.getState().toString()),
        ensemble=int(metadata.getEnsembleSize()),
        write_quorum=int(metadata.getWriteQuorumSize()),
        ack_quorum=int(metadata.getAckQuorumSize()),
        last_entry=int(metadata.getLastEntryId()) if metadata.isClosed() else -1,
        length=int(metadata.getLength()) if metadata.isClosed() else 0,
        digest=next(ours for ours, javas in _DIGESTS.items() if javas == digest),
        custom=custom,
        fragments=fragments,
    )


class JavaWriter:
    """A WriteHandle or WriteAdvHandle."""

    def __init__(self, java: Java, handle: Any) -> None:
        self._java = java
        self._handle = handle

    @property
    def id(self) -> int:
        return int(self._handle.getId())

    @property
    def confirmed(self) -> int:
        return int(self._handle.getLastAddConfirmed())

    def append(self, payload: bytes) -> int:
        return self._append_all([payload])[0]

    def append_many(self, payloads: Sequence[bytes]) -> list[int]:
        return self._append_all(payloads)

    def append_unawaited(self, payloads: Sequence[bytes]) -> None:
        """Send them and do not wait for anything."""
        for payload in payloads:
            self._handle.appendAsync(payload)

    def append_at(self, entries: Sequence[tuple[int, bytes]]) -> list[int]:
        futures = [self._handle.writeAsync(entry_id, payload) for entry_id, payload in entries]
        return [int(self._java.get(future)) for future in futures]

    def force(self) -> None:
        self._java.get(self._handle.force())

    def close(self) -> None:
        self._java.get(self._handle.closeAsync())

    def abandon(self) -> None:
        """Nothing: in Java a handle that nobody closes leaves its ledger open."""

    def _append_all(self, payloads: Sequence[bytes]) -> list[int]:
        try:
            return [int(self._java.get(future)) for future in list(map(self._handle.appendAsync, payloads))]
        except JavaError as error:
            if error.code in _FENCED:
                raise FencedError(str(error)) from error
            raise


class JavaReader:
    """A ReadHandle."""

    def __init__(self, java: Java, handle: Any) -> None:
        self._java = java
        self._handle = handle

    @property
    def confirmed(self) -> int:
        return int(self._handle.getLastAddConfirmed())

    @property
    def closed(self) -> bool:
        return bool(self._handle.isClosed())

    @property
    def length(self) -> int:
        return int(self._handle.getLength())

    def read(self, first: int, last: int) -> list[bytes]:
        return self._payloads(self._handle.readAsync(first, last))

    def read_unconfirmed(self, entry_id: int) -> bytes:
        return self._payloads(self._handle.readUnconfirmedAsync(entry_id, entry_id))[0]

    def read_batch(self, first: int, count: int, size: int) -> list[bytes]:
        return self._payloads(self._java.call(lambda: self._handle.batchReadAsync(first, count, size)))

    def ask_confirmed(self) -> int:
        return int(self._java.get(self._handle.readLastAddConfirmedAsync()))

    def wait_for(self, entry_id: int, timeout_ms: int) -> bytes | None:
        answer = self._java.get(self._handle.readLastAddConfirmedAndEntryAsync(entry_id, timeout_ms, False))
        if not answer.hasEntry():
            return None
        return bytes(answer.getEntry().getEntryBytes())

    def close(self) -> None:
        self._java.get(self._handle.closeAsync())

    def _payloads(self, future: Any) -> list[bytes]:
        entries = self._java.get(future)
        found = entries.iterator()
        payloads = []
        while found.hasNext():
            payloads.append(bytes(found.next().getEntryBytes()))
        self._java.call(entries.close)
        return payloads
