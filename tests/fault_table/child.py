"""The processes that meet the faults: ``python -m tests.fault_table.child`` forks one for each line that it reads.

A line is JSON: what to do (``live`` or ``check``), the directory, the file of promises, and the environment.
``live`` works on real files, and writes each promise down when it is made. ``check`` starts on the same files and says
what of the promises does not hold. The answer is a line of JSON, too.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from bookkeeper.real.disk import PosixDisk
from bookkeeper.storage.base.config import StorageConfig
from tests.bookkeeper.storage.workload import make_entry
from tests.fault_table.simulated import SETTINGS, FaultyLife, guarded, result_of

ARMED = "armed"


def settings(home: Path) -> StorageConfig:
    return replace(SETTINGS, journal_dir=str(home / "journal"), ledger_dir=str(home / "ledgers"))


def live(home: Path, promises: Path) -> list[str]:
    life = FaultyLife(PosixDisk(), settings(home))
    with promises.open("w", buffering=1) as told:
        life.told = lambda line: print(line, file=told)
        life.open()
        life.begin()
        (home.parent / ARMED).touch()
        guarded(life, life.work)
        result = result_of(life)
        guarded(life, life.close)
    return [result.value, *life.wrong]


def check(home: Path, promises: Path) -> list[str]:
    life = FaultyLife(PosixDisk(), settings(home))
    for line in promises.read_text().splitlines():
        word, ledger_id, *entry_id = line.split()
        if word == "acked":
            key = int(ledger_id), int(entry_id[0])
            life.acked[key] = make_entry(*key, size=900)
        else:
            (life.fenced if word == "fenced" else life.gone).add(int(ledger_id))
    life.check("the end of the process")
    return ["checked", *life.wrong]


def serve() -> None:
    """Nothing is imported twice, and nothing is shared: whoever lives ends without cleaning up."""
    for line in sys.stdin:
        what, home, promises, environment = json.loads(line)
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            try:
                found = (live if what == "live" else check)(Path(home), Path(promises))
            except BaseException as error:
                found = ["fell over", f"{what} fell over: {error!r}"]
            os.write(1, json.dumps(found).encode() + b"\n")
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    serve()
