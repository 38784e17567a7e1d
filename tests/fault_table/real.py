"""A cell in a real process on real files: a library that is loaded before the system's lets one call fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.fault_table.child import ARMED
from tests.fault_table.simulated import PATHS, Trial
from tests.fault_table.table import Cell, Result, When, cells

CALLS: Final = {"sync": "fdatasync", "sync_directory": "fsync", "short pwrite": "pwrite", "truncate": "ftruncate"}
"""Those whose names differ."""
RESULTS: Final = {each.value: each for each in Result}
SOURCE: Final = Path(__file__).with_name("faults.c")


def why_not() -> str | None:
    """Why this machine cannot do it; None if it can."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    return None if shutil.which("cc") else "there is no C compiler"


def build(directory: Path) -> Path:
    """Compile the library."""
    library = directory / "faults.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def real_cells() -> Iterator[Cell]:
    """The first call and all calls fail, while the bookie serves."""
    yield from (cell for cell in cells((When.FIRST, When.ALL)) if not cell.starting)


class Processes:
    """Makes a process for each life, all with the library."""

    def __init__(self, library: Path) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.fault_table.child"],
            env={**os.environ, "LD_PRELOAD": str(library)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._parent.communicate()

    def run(self, what: str, home: Path, promises: Path, fault: dict[str, str]) -> list[str]:
        """Have it done; what was said of it."""
        assert self._parent.stdin is not None and self._parent.stdout is not None
        print(json.dumps([what, str(home), str(promises), fault]), file=self._parent.stdin, flush=True)
        found: list[str] = json.loads(self._parent.stdout.readline())
        return found


def try_cell(cell: Cell, processes: Processes) -> Trial:
    """Live in one process, look in another."""
    trial = Trial(cell)
    with tempfile.TemporaryDirectory(prefix="bk-faults-") as place:
        top = Path(place)
        home, met, promises = top / "bookie", top / "met", top / "promises"
        fault = {
            "FAULT_CALL": CALLS.get(cell.call, cell.call),
            "FAULT_ROOT": str(home),
            "FAULT_PATH": PATHS[cell.place],
            "FAULT_ERRNO": str(cell.code),
            "FAULT_AFTER": str(cell.when.passing),
            "FAULT_TIMES": str(cell.when.failing),
            "FAULT_SHORT": "1" if cell.call == "short pwrite" else "",
            "FAULT_ARMED": str(top / ARMED),
            "FAULT_MET": str(met),
        }
        result, *trial.wrong = processes.run("live", home, promises, fault)
        trial.met = met.exists()
        if result in RESULTS:
            trial.result = RESULTS[result]
        trial.wrong += processes.run("check", home, promises, {})[1:]
    return trial
