"""The bookie's process on a volume: the production program, or one with a bug (:mod:`tests.power_cuts.sabotage`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bookkeeper.bookie.control.bookie_control import SOCKET
from bookkeeper.ids import Address, BookieId
from bookkeeper.real.unix_socket import request_unix

BOOKIE: Final = BookieId("b:3181")
SERVING: Final = " serves at "

CONFIG: Final = """
metadata_uri = "sqlite:///{home}/metadata.db"
directory = "{volume}/bookie"
bookie_id = "{bookie}"
listen = "127.0.0.1:0"
http_listen = ""
metadata_session_s = 1.0
garbage_interval_s = 1000.0
garbage_grace_s = 0.05

[storage]
journal_file_bytes = 262144
journal_spares = 2
entry_log_bytes = 262144
checkpoint_bytes = 196608
log_sync_bytes = 65536
reserve_bytes = 1048576
index_segments = 3
major_compaction_ratio = 0.9
compaction_bytes_per_s = 0
entry_log_per_ledger = {per_ledger}
log_idle_s = 0.5
"""
"""Small files, so that each life has new ones, checkpoints and compactions."""

OF_RESERVE: Final = "bookie.command: reserve_bytes is "
"""The advice about a reserve that is small because the volume is."""
OF_REQUESTS: Final = "connections.request_log:"
"""Who logs what was refused: what a bookie answers is judged where it is asked."""
STAGE: Final = "starting: "
"""Begins what a process says while it starts."""


class Machine:
    """One bookie. Its files are on ``volume``; its log and the metadata are in ``home``, where the power stays on."""

    def __init__(self, home: Path, volume: Path, *, per_ledger: bool = False, sabotage: str | None = None) -> None:
        self.address: Address | None = None
        self._volume = volume
        self._log = home / "log"
        self._log.touch()
        self._heard = 0
        config = home / "bookie.toml"
        per = json.dumps(per_ledger)
        config.write_text(CONFIG.format(home=home, volume=volume, bookie=BOOKIE, per_ledger=per))
        program = ["bookkeeper.bookie"] if sabotage is None else ["tests.power_cuts.sabotage", sabotage]
        self._command = [sys.executable, "-m", *program, "--config", str(config)]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Begin a life; it is not waited for."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )

    async def serving(self) -> bool:
        """Wait until it serves; False if it ended before."""
        assert self._process is not None and self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        if SERVING not in line:
            return False
        self.address = Address.parse(line.partition(SERVING)[2].partition(",")[0].strip())
        return True

    def terminate(self) -> None:
        """Ask it to stop."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    async def stopped(self) -> int:
        """Wait for its end; the exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        """End it at once. Idempotent."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.communicate()
            self._process = None

    def heard(self) -> list[str]:
        """What it has logged since this was asked last, of itself: warnings and errors, not the stages of its start."""
        with self._log.open("rb") as log:
            log.seek(self._heard)
            said = log.read()
        self._heard += len(said)
        lines = said.decode(errors="replace").splitlines()
        expected = (OF_REQUESTS, OF_RESERVE)
        return [line for line in lines if not line.startswith(STAGE) and not any(each in line for each in expected)]

    def deafen(self) -> None:
        """What it has logged so far is of no interest: its disk was away."""
        self._heard = os.path.getsize(self._log)

    async def command(self, name: str, **options: Any) -> Mapping[str, Any]:
        """Give a command; the result, empty if the bookie refuses or ends."""
        last = b"{}"
        with contextlib.suppress(OSError):
            path = str(self._volume / "bookie" / SOCKET)
            async for line in request_unix(path, json.dumps({"command": name, **options}).encode()):
                last = line
        result: Mapping[str, Any] = json.loads(last).get("result", {})
        return result
