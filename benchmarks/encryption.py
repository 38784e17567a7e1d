"""What encryption of entries costs a client: processor time an entry beside a plain ledger, in interleaved pairs.

python -m benchmarks.encryption [DIRECTORY]

Bookies are processes of their own and see no difference but 16 bytes an entry; what is measured is the client process,
user and system together. Each pair writes and reads one plain and one encrypted ledger, the order changing.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.processes import BookieProcesses
from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.encryption import CallableKeys, EncryptionConfig, KeyRing
from bookkeeper.real import run

ROWS: Final = ((100, 30_000), (1_000, 30_000), (65_536, 1_000))
"""Bytes of an entry, and how many."""
PAIRS: Final = 5
RUN: Final = 200
KEYS: Final = CallableKeys(lambda: KeyRing({"benchmark": bytes(32)}))


async def _write(bk: BookKeeper, size: int, count: int) -> tuple[int, float]:
    """A closed ledger, and the processor time of an entry in microseconds."""
    payloads = [bytes([number % 256]) * size for number in range(RUN)]
    async with await bk.create_ledger() as ledger:
        await ledger.append_many(payloads)
        began = time.process_time()
        for _ in range(count // RUN):
            for payload in payloads:
                ledger.append_nowait(payload)
            await ledger.room()
        await ledger.flush()
        spent = time.process_time() - began
    return ledger.id, spent / (count // RUN * RUN) * 1e6


async def _read(bk: BookKeeper, ledger: int) -> float:
    """The processor time of an entry in microseconds."""
    async with await bk.open_ledger(ledger) as reader:
        began, seen = time.process_time(), 0
        async for _, payloads in reader.read_batches(0, reader.last_add_confirmed):
            seen += len(payloads)
        return (time.process_time() - began) / seen * 1e6


async def measure(uri: str) -> list[tuple[str, float, float]]:
    """(what, plain, encrypted) in microseconds an entry, medians of the pairs."""
    plain = ClientConfig(add_timeout_ms=120_000, bookie_stall_ms=60_000, bookie_trail_bytes_max=1 << 30)
    kinds = {
        "aes": replace(plain, encryption=EncryptionConfig(provider=KEYS)),
        "chacha": replace(plain, encryption=EncryptionConfig(provider=KEYS, cipher="chacha20-poly1305")),
    }
    found: list[tuple[str, float, float]] = []
    for name, config in kinds.items():
        async with BookKeeper.connect(uri, config=plain) as one, BookKeeper.connect(uri, config=config) as two:
            for size, count in ROWS:
                added: dict[BookKeeper, list[float]] = {one: [], two: []}
                read: dict[BookKeeper, list[float]] = {one: [], two: []}
                for pair in range(PAIRS):
                    for bk in (one, two) if pair % 2 else (two, one):
                        ledger, spent = await _write(bk, size, count)
                        added[bk].append(spent)
                        read[bk].append(await _read(bk, ledger))
                        await bk.delete_ledger(ledger)
                for what, times in (("append", added), ("read", read)):
                    found.append((f"{name} {what} {size} B", median(times[one]), median(times[two])))
    return found


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    where = arguments[0] if arguments else None
    with tempfile.TemporaryDirectory(dir=where) as directory, BookieProcesses(Path(directory) / "cluster") as cluster:
        for what, plain, encrypted in run(measure(cluster.metadata)):
            print(f"{what:>22}  {plain:8.2f}  {encrypted:8.2f}  +{encrypted - plain:.2f} us")


if __name__ == "__main__":
    main(sys.argv[1:])
