"""Children that end with their parent: started, watched, paused, killed by name.

Every child leads a process group of its own, so that a Spark driver and its JVM are killed as one; the
kernel is asked to end a child whose parent has died (PR_SET_PDEATHSIG), and ``Children`` ends all of
them when it is left, however it is left.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bookkeeper.launchers.machine_speed import handed_on, stretch
from bookkeeper.launchers.waiting import ProgressSource, until_async

_END_GRACE_S: Final = 5.0
"""How long a child may take to end by itself before it is killed, on a machine of the reference's speed."""

# Set the death signal in the child itself, then check that the parent did not die before that.
_LAUNCH: Final = (
    "import ctypes,os,sys;"
    "ctypes.CDLL(None).prctl(1,9) if sys.platform=='linux' else None;"
    "os.getppid()==int(sys.argv[1]) or sys.exit(1);"
    "os.execv(sys.argv[2],sys.argv[2:])"
)


def ending_with_this_process(command: Sequence[str]) -> list[str]:
    """The command, changed so that what it starts is killed when this process ends."""
    return [sys.executable, "-c", _LAUNCH, str(os.getpid()), *command]


class Child:
    """One process and its group."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path, said_from: int = 0) -> None:
        self.name = name
        self.log = log
        self._said_from = said_from
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout(self) -> asyncio.StreamReader:
        assert self._process.stdout is not None, f"{self.name} was not started with its output piped"
        return self._process.stdout

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def wait(self) -> int:
        """Its exit status; negative: the signal that ended it."""
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, unless it has ended."""
        if self.alive:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass

    async def kill(self) -> None:
        """SIGKILL the group; return when the leader is gone."""
        self.signal(signal.SIGKILL)
        await self.wait()

    async def end(self) -> None:
        """Ask it to end; kill it if it does not."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.wait(), _END_GRACE_S * stretch())
        except TimeoutError:
            await self.kill()

    async def until(self, holds: Callable[[], bool | Awaitable[bool]], what: str, *files: Path) -> None:
        """Wait until it is up, as long as it makes progress.

        Args:
            files: what it writes besides its log, and what it writes into.

        Raises:
            StalledError: it has ended, or makes no progress.
        """
        watched = ProgressSource(logs=[self.log], files=files, pids=[self.pid], runs=lambda: self.alive)
        await until_async(holds, what, watched)

    async def until_said(self, pattern: str, what: str, *files: Path) -> None:
        """Wait until it writes a line into its log that matches. Raises: as :meth:`until`."""
        found = re.compile(pattern, re.MULTILINE)
        await self.until(lambda: found.search(self.said) is not None, what, *files)

    async def until_ended(self) -> None:
        """Wait until it has ended by itself, as long as it makes progress. Raises: StalledError."""
        watched = ProgressSource(logs=[self.log], pids=[self.pid])
        await until_async(lambda: not self.alive, f"the end of {self.name}", watched)

    @property
    def said(self) -> str:
        """What it has written into its log since it was started."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._said_from)
            return log.read().decode(errors="replace")

    def last_words(self, lines: int = 15) -> str:
        """The end of its log, for an error message."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


class Children:
    """All of them. Leaving the context ends every one that is still there, the youngest first."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._all: list[Child] = []

    async def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        pipe_output: bool = False,
    ) -> Child:
        """Start ``command`` (its first word an absolute path) as the leader of a new group."""
        log = self._logs / f"{name}.log"
        with log.open("ab") as sink:
            said_from = sink.tell()
            process = await asyncio.create_subprocess_exec(
                *ending_with_this_process(command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if pipe_output else sink,
                stderr=sink,
                cwd=directory,
                env={**os.environ, **handed_on(), **(environment or {})},
                start_new_session=True,
                limit=1 << 20,
            )
        child = Child(name, process, log, said_from)
        self._all.append(child)
        return child

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in reversed(self._all):
            await child.end()
