"""Load on a ledger, and the most important figures of a cluster: one JSON line.

::

    python -m benchmarks.ledger_load add [--metadata URI] [--count N] [--window N] ...
    python -m benchmarks.ledger_load read LEDGER [--metadata URI] ...

Adds form a closed loop: ``--window`` appends are in flight, each with its own future, and the next one starts when one
is confirmed. A latency is the time of one append from its start to its confirmation. CPU is the time of this process
and of the ``--pids`` (from /proc) per entry, over the measured part only.
"""

from __future__ import annotations

import asyncio
import os
import time
from array import array
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bookkeeper.admin.cli import explain
from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.ledger.append import ledger_shape_options
from bookkeeper.admin.shared.interruption import Interruption, note
from bookkeeper.admin.shared.options import (
    connected,
    finish,
    ledger_argument,
    metadata_option,
    password_option,
    print_json,
)
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.codec import IMPLEMENTATION
from bookkeeper.errors import BookKeeperError, ConfigError
from bookkeeper.option_types import WholeNumber

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class _Measurements(CommandGroup):
    """Our errors end the command with one sentence and status 1, as those of ``bk``."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BookKeeperError as error:
            raise click.ClickException(explain(error)) from error


@click.group(cls=_Measurements)
def main() -> None:
    """Measure a cluster. Prints one JSON line: rates, percentiles in microseconds, CPU time of an entry."""


def _pids(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in value.split(",") if part)
    except ValueError:
        raise click.BadParameter("expected process ids, separated by commas") from None


_pids_option = click.option(
    "--pids", default="", callback=_pids, metavar="PID,PID", help="Also count the CPU time of these processes."
)
_protocol_option = click.option(
    "--protocol", type=click.Choice(["v2", "v3"]), default="v3", show_default=True, help="The wire protocol."
)


@main.command()
@metadata_option
@_pids_option
@_protocol_option
@click.option(
    "--size",
    type=WholeNumber(0),
    metavar="BYTES",
    default=1024,
    show_default=True,
    help="Bytes of an entry's payload.",
)
@click.option(
    "--count",
    type=WholeNumber(1),
    metavar="N",
    default=100_000,
    show_default=True,
    help="Entries that are measured.",
)
@click.option(
    "--warm-up",
    type=WholeNumber(0),
    metavar="N",
    default=10_000,
    show_default=True,
    help="Entries that are written first, and not measured.",
)
@click.option(
    "--window",
    type=WholeNumber(1),
    metavar="N",
    default=1000,
    show_default=True,
    help="Appends in flight at a time.",
)
@click.option(
    "--many",
    type=WholeNumber(1),
    metavar="N",
    help="Use append_many with runs of this many instead of single appends.",
)
@ledger_shape_options
@click.option("--keep", is_flag=True, help="Do not delete the ledger afterwards.")
def add(
    metadata: str,
    pids: tuple[int, ...],
    protocol: str,
    size: int,
    count: int,
    warm_up: int,
    window: int,
    many: int | None,
    ensemble: int,
    write_quorum: int,
    ack_quorum: int,
    digest: str,
    keep: bool,
) -> None:
    """Append entries to a new ledger."""

    async def work() -> dict[str, Any]:
        config = ClientConfig(protocol=protocol)
        meter = Meter(pids)
        with Interruption() as asked:
            async with connected(metadata, config, makes=True) as bk:
                writer = await bk.create_ledger(
                    ensemble=ensemble,
                    write_quorum=write_quorum,
                    ack_quorum=ack_quorum,
                    digest=digest,
                    unsafe_without_digest=digest == "dummy",
                )
                note(f"writing to ledger {writer.id}")
                asked.leaves = f"ledger {writer.id} is left open; `bk ledger delete {writer.id}` removes it"
                payload = bytes(size)
                try:
                    if warm_up:
                        await _closed_loop(writer, payload, warm_up, window, asked)
                    meter = Meter(pids)
                    if many is None:
                        spans = await _closed_loop(writer, payload, count, window, asked)
                    else:
                        spans = await _append_runs(writer, payload, count, many, window, asked)
                except BookKeeperError as error:
                    error.add_note(asked.leaves)
                    raise
                figures = meter.stop(max(len(spans), 1), size, spans)
                await writer.close()
                figures |= {"op": "add", "size": size, "window": window, "many": many, "protocol": protocol}
                figures |= {
                    "ensemble": f"{ensemble}/{write_quorum}/{ack_quorum}",
                    "digest": digest,
                    "ledger": int(writer.id),
                }
                if not keep:
                    await bk.delete_ledger(writer.id)
                if asked:
                    asked.end(f"ledger {writer.id} is {'closed and kept' if keep else 'deleted'}")
                return figures

    print_json(finish(work()))


@main.command()
@metadata_option
@_pids_option
@_protocol_option
@password_option
@ledger_argument
@click.option(
    "--mode",
    type=click.Choice(["batch", "single"]),
    default="batch",
    show_default=True,
    help="Ask for many entries at a time, or for one.",
)
@click.option(
    "--window", type=WholeNumber(1), metavar="N", default=100, show_default=True, help="Single reads in flight."
)
@click.option(
    "--rounds",
    type=WholeNumber(1),
    metavar="N",
    default=1,
    show_default=True,
    help="How often all entries are read.",
)
def read(
    metadata: str,
    pids: tuple[int, ...],
    protocol: str,
    password: str,
    ledger_id: int,
    mode: str,
    window: int,
    rounds: int,
) -> None:
    """Read a ledger from front to back."""

    async def work() -> dict[str, Any]:
        async with (
            connected(metadata, ClientConfig(protocol=protocol, read_window=window)) as bk,
            await bk.open_ledger(ledger_id, password.encode(), recovery=False) as reader,
        ):
            last = int(reader.last_add_confirmed)
            if last < 0:
                raise ConfigError(f"ledger {ledger_id} is empty: there is nothing to read")
            meter = Meter(pids)
            entries, size, spans = await (_batches if mode == "batch" else _singles)(reader, last, window, rounds)
            figures = meter.stop(entries, size / max(entries, 1), spans)
        return figures | {"op": "read", "mode": mode, "window": window, "protocol": protocol, "ledger": ledger_id}

    print_json(finish(work()))


class ClosedLoop:
    """``count`` appends, ``window`` of them in flight, without tasks. It reads the clock once per start and end."""

    def __init__(self, writer: WriteHandle, payload: bytes, count: int, window: int) -> None:
        self._append = writer.append_nowait
        self._payload = payload
        self._left = count
        self._open = 0
        self._window = window
        self._started: deque[float] = deque()
        self._spans = array("d")
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Begin no more appends. :meth:`run` ends when those in flight are confirmed."""
        self._left = 0

    async def run(self) -> array[float]:
        """Run the loop. Returns the seconds of every append, in order of confirmation."""
        for _ in range(min(self._window, self._left)):
            self._send()
        if self._open:
            await self._finished
        return self._spans

    def _send(self) -> None:
        self._left -= 1
        self._open += 1
        self._started.append(time.perf_counter())
        self._append(self._payload).add_done_callback(self._on_done)

    def _on_done(self, done: asyncio.Future[Any]) -> None:
        self._open -= 1
        error = done.exception()
        if error is not None:
            if not self._finished.done():
                self._finished.set_exception(error)
            return
        self._spans.append(time.perf_counter() - self._started.popleft())
        if self._left:
            self._send()
        elif not self._open:
            self._finished.set_result(None)


async def _closed_loop(
    writer: WriteHandle, payload: bytes, count: int, window: int, asked: Interruption
) -> array[float]:
    loop = ClosedLoop(writer, payload, count, min(window, count))
    asked.on_interrupt(loop.stop)
    return await loop.run()


async def _append_runs(
    writer: WriteHandle, payload: bytes, count: int, many: int, window: int, asked: Interruption
) -> array[float]:
    """Append runs of ``many`` with about ``window`` entries in flight. A run's time counts for each of its entries."""
    spans = array("d")
    left = count

    async def in_flight() -> None:
        nonlocal left
        while left > 0 and not asked:
            size = min(many, left)
            left -= size
            began = time.perf_counter()
            await writer.append_many([payload] * size)
            spans.extend([time.perf_counter() - began] * size)

    await asyncio.gather(*(in_flight() for _ in range(max(1, window // many))))
    return spans


async def _batches(reader: ReadHandle, last: int, window: int, rounds: int) -> tuple[int, int, array[float]]:
    entries = size = 0
    for _ in range(rounds):
        async for _first, payloads in reader.read_batches(0, last):
            entries += len(payloads)
            size += sum(map(len, payloads))
    return entries, size, array("d")


async def _singles(reader: ReadHandle, last: int, window: int, rounds: int) -> tuple[int, int, array[float]]:
    spans = array("d")
    size = 0
    numbers = iter([entry for _ in range(rounds) for entry in range(last + 1)])

    async def in_flight() -> None:
        nonlocal size
        for entry in numbers:
            began = time.perf_counter()
            size += len(await reader.read_entry(entry))
            spans.append(time.perf_counter() - began)

    await asyncio.gather(*(in_flight() for _ in range(window)))
    return len(spans), size, spans


class Meter:
    """Measures wall and CPU time from its creation to :meth:`stop`."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._cpu_pids = sum(map(cpu_seconds, pids))
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self, entries: int, size: float, spans: array[float]) -> dict[str, Any]:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        cpu_pids = sum(map(cpu_seconds, self._pids)) - self._cpu_pids
        figures: dict[str, Any] = {
            "entries": entries,
            "seconds": round(wall, 3),
            "entries_per_s": round(entries / wall),
            "mb_per_s": round(entries * size / wall / 1e6, 1),
            "codec": IMPLEMENTATION,
            "cpu_us_client": round(cpu / entries * 1e6, 2),
        }
        if self._pids:
            figures["cpu_us_pids"] = round(cpu_pids / entries * 1e6, 2)
            figures["cpu_us"] = round((cpu + cpu_pids) / entries * 1e6, 2)
        if spans:
            figures |= percentiles(spans)
        return figures


def percentiles(spans: Sequence[float]) -> dict[str, float]:
    """p50 to p999 in microseconds, by the nearest rank."""
    ordered = sorted(spans)
    ranks = {"p50_us": 0.50, "p90_us": 0.90, "p99_us": 0.99, "p999_us": 0.999}
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * rank))] * 1e6, 1) for name, rank in ranks.items()
    }


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads.

    Raises:
        ConfigError: there is no such process.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        raise ConfigError(f"--pids: there is no process {pid}") from None
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.ledger_load")
