"""The load generator on our client: one-line JSON commands on standard input, one line of JSON for each.

It lives for the whole benchmark. Its twin on Apache's client is ``Load.java``: the same commands, the same shape of
load (one awaited future an entry, ``window`` of them in flight), the same fields in the answers.

    python -m benchmarks.apache.load
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
import traceback
from array import array
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bookkeeper import BookKeeper, ClientConfig, ReadHandle, WriteHandle
from bookkeeper.errors import BookKeeperError
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import run

Command = dict[str, Any]
Answer = dict[str, Any]
_TICKS = os.sysconf("SC_CLK_TCK")
_MANY = 1 << 40


class Clients:
    """One client per cluster and protocol, kept until told to forget."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], BookKeeper] = {}

    async def of(self, command: Command) -> BookKeeper:
        key = (command["uri"], command.get("protocol", "v3"))
        if key not in self._clients:
            self._clients[key] = await BookKeeper.connect(key[0], config=self._config(key[1], command.get("trust")))
        return self._clients[key]

    def _config(self, protocol: str, trust: str | None) -> ClientConfig:
        options: dict[str, Any] = {"protocol": protocol, "delete_grace_s": 0}
        if trust is not None:
            options["tls"] = TlsConfig(ca=trust)
        return ClientConfig(**options)

    async def forget(self, uri: str) -> None:
        for key in [key for key in self._clients if key[0] == uri]:
            await self._clients.pop(key).close()


class TimedLoop:
    """``window`` appends in flight until time or count is used up; each confirmed one sends the next."""

    def __init__(self, writer: WriteHandle, payload: bytes, window: int, count: int, seconds: float) -> None:
        self._append = writer.append_nowait
        self._payload = payload
        self._left = count
        self._deadline = time.perf_counter() + seconds
        self._open = 0
        self._window = window
        self._started: deque[float] = deque()
        self._spans = array("d")
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> array[float]:
        """Seconds of every append, in order of confirmation."""
        for _ in range(min(self._window, self._left)):
            self._send(time.perf_counter())
        await self._finished
        return self._spans

    def _send(self, now: float) -> None:
        self._left -= 1
        self._open += 1
        self._started.append(now)
        self._append(self._payload).add_done_callback(self._on_done)

    def _on_done(self, done: asyncio.Future[Any]) -> None:
        self._open -= 1
        error = done.exception()
        if error is not None:
            if not self._finished.done():
                self._finished.set_exception(error)
            return
        now = time.perf_counter()
        self._spans.append(now - self._started.popleft())
        if self._left > 0 and now < self._deadline:
            self._send(now)
        elif not self._open and not self._finished.done():
            self._finished.set_result(None)


class Load:
    """Obeys commands."""

    def __init__(self) -> None:
        self._clients = Clients()

    async def obey(self, command: Command) -> Answer:
        """Perform one command; its answer.

        Raises: whatever went wrong; the caller reports it.
        """
        obeys: dict[str, Callable[[Command], Coroutine[Any, Any, Answer]]] = {
            "hello": self._hello,
            "add": self._add,
            "fill": self._fill,
            "read": self._read,
            "tail": self._tail,
            "create": self._create,
            "recover": self._recover,
            "first_add": self._first_add,
            "delete": self._delete,
            "forget": self._forget,
        }
        return await obeys[command["op"]](command)

    async def _hello(self, command: Command) -> Answer:
        return {"pid": os.getpid()}

    async def _forget(self, command: Command) -> Answer:
        await self._clients.forget(command["uri"])
        return {}

    async def _delete(self, command: Command) -> Answer:
        await (await self._clients.of(command)).delete_ledger(command["ledger"])
        return {}

    async def _add(self, command: Command) -> Answer:
        client = await self._clients.of(command)
        writer = await client.create_ledger(write_quorum=command.get("write_quorum", 3))
        payload, window = bytes(command["size"]), command["window"]
        await TimedLoop(writer, payload, window, _MANY, command.get("warm_s", 0.3)).run()
        loop = TimedLoop(writer, payload, window, command["count"], command["seconds"])
        meter = MachineMeter(command)
        spans = await loop.run()
        answer = meter.stop(len(spans), spans)
        await writer.close()
        await client.delete_ledger(writer.id)
        return answer

    async def _fill(self, command: Command) -> Answer:
        writer = await (await self._clients.of(command)).create_ledger()
        await TimedLoop(writer, bytes(command["size"]), command.get("window", 1000), command["count"], 600).run()
        await (writer.close() if command.get("close", True) else writer.abandon())
        return {"ledger": int(writer.id)}

    async def _read(self, command: Command) -> Answer:
        client = await self._clients.of(command)
        async with await client.open_ledger(command["ledger"], recovery=False) as reader:
            reads = _batches if command["mode"] == "batch" else _singles
            await reads(reader, command, command.get("warm_s", 0.3))
            meter = MachineMeter(command)
            entries, spans = await reads(reader, command, command["seconds"])
            return meter.stop(entries, spans)

    async def _tail(self, command: Command) -> Answer:
        """Adds at a fixed rate, and a reader in long poll: from the add's call to the entry in the reader's hand."""
        client = await self._clients.of(command)
        rate, count = command["rate"], int(command["rate"] * command["seconds"])
        writer = await client.create_ledger()
        await writer.append(bytes(100))
        await writer.append(bytes(100))
        sent, seen = array("d", bytes(8 * (count + 2))), array("d", bytes(8 * (count + 2)))
        async with await client.open_ledger(writer.id, recovery=False) as reader:

            async def follow() -> None:
                async for first, payloads in reader.tail_batches(0):
                    now = time.perf_counter()
                    for entry in range(first, first + len(payloads)):
                        seen[entry] = now

            meter = MachineMeter(command)
            follower = asyncio.create_task(follow())
            payload = bytes(command["size"])
            began = time.perf_counter()
            pending = []
            for number in range(count):
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                sent[number + 2] = time.perf_counter()
                pending.append(writer.append_nowait(payload))
            await asyncio.gather(*pending)
            await writer.close()
            await follower
            spans = array("d", [at - sent[entry] for entry, at in enumerate(seen) if entry > 1 and at])
            answer = meter.stop(len(spans), spans)
        await client.delete_ledger(writer.id)
        return answer | {"missing": count - len(spans)}

    async def _create(self, command: Command) -> Answer:
        client = await self._clients.of(command)

        async def pairs(seconds: float) -> array[float]:
            spans = array("d")
            deadline = time.perf_counter() + seconds

            async def lane() -> None:
                while (began := time.perf_counter()) < deadline:
                    writer = await client.create_ledger()
                    await writer.close()
                    spans.append(time.perf_counter() - began)

            await asyncio.gather(*(lane() for _ in range(command["lanes"])))
            return spans

        await pairs(command.get("warm_s", 0.3))
        meter = MachineMeter(command)
        spans = await pairs(command["seconds"])
        return meter.stop(len(spans), spans)

    async def _recover(self, command: Command) -> Answer:
        client = await self._clients.of(command)
        began = time.perf_counter()
        reader = await client.open_ledger(command["ledger"], recovery=True)
        seconds = time.perf_counter() - began
        entries = reader.last_add_confirmed + 1
        await reader.close()
        await client.delete_ledger(command["ledger"])
        return {"recovered_s": seconds, "entries": entries}

    async def _first_add(self, command: Command) -> Answer:
        """Waits for the first bookie of a cluster that is starting: until one add on one bookie is confirmed."""
        deadline = time.perf_counter() + command.get("patience_s", 60)
        while True:
            try:
                client = await self._clients.of(command)
                async with await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as writer:
                    await writer.append(bytes(100))
                    return {}
            except (BookKeeperError, OSError):
                if time.perf_counter() > deadline:
                    raise
                await asyncio.sleep(0.01)


async def _singles(reader: ReadHandle, command: Command, seconds: float) -> tuple[int, array[float]]:
    """One request of the application an entry, ``window`` of them in flight."""
    size = reader.last_add_confirmed + 1
    spans = array("d")
    deadline = time.perf_counter() + seconds
    chance = random.Random(7).randrange
    scattered = command["mode"] == "random"
    following = 0

    async def lane() -> None:
        nonlocal following
        while (began := time.perf_counter()) < deadline:
            if scattered:
                entry = chance(size)
            else:
                entry, following = following, (following + 1) % size
            await reader.read_entry(entry)
            spans.append(time.perf_counter() - began)

    await asyncio.gather(*(lane() for _ in range(command["window"])))
    return len(spans), spans


async def _batches(reader: ReadHandle, command: Command, seconds: float) -> tuple[int, array[float]]:
    """From front to back, again and again."""
    entries = 0
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        async for _, payloads in reader.read_batches(0, reader.last_add_confirmed):
            entries += len(payloads)
    return entries, array("d")


class MachineMeter:
    """Wall time, and CPU of this process, of those named, and of the whole machine, from its making to stop()."""

    def __init__(self, command: Command) -> None:
        self._pids: list[int] = command.get("pids", [])
        self._own = _cpu("self")
        self._others = sum(map(_cpu, self._pids))
        self._machine = _machine()
        self._began = time.perf_counter()

    def stop(self, entries: int, spans: array[float]) -> Answer:
        answer: Answer = {
            "entries": entries,
            "seconds": time.perf_counter() - self._began,
            "cpu_client_s": _cpu("self") - self._own,
            "cpu_bookies_s": sum(map(_cpu, self._pids)) - self._others,
            "cpu_machine_s": _machine() - self._machine,
        }
        ordered = sorted(spans)  # not a part of what is measured
        for name, part in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)):
            answer[name] = ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1e6 if ordered else 0.0
        return answer


def _cpu(pid: int | str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _machine() -> float:
    """Everything but idling and waiting for disks; stolen time too."""
    numbers = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(numbers) - numbers[3] - numbers[4]) / _TICKS


async def serve() -> None:
    """Until standard input ends, or the command ``quit``."""
    load = Load()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        if command["op"] == "quit":
            return
        try:
            answer = await load.obey(command)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(serve())
