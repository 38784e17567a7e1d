"""Real processes of the command ``bk``, for tests: started, watched by what they print, paused, killed.

Nothing here waits for a time to pass: whoever waits names a condition and a deadline.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from bookkeeper.launchers import waiting
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import ProgressSource, StalledError
from bookkeeper.launchers.zookeeper import free_port as free_port
from bookkeeper.real import run, system_seams

T = TypeVar("T")

_PATIENCE_S: Final = 60.0
"""Until what must come is missed: no promise about how soon it comes, on a machine that has other things to do."""
_PR_SET_PDEATHSIG: Final = 1
_JOURNAL_BYTES: Final = 8 * 1024 * 1024
"""Journal files are filled with zeros at the first start: small ones start fast."""


def until(condition: Callable[[], T], deadline_s: float = _PATIENCE_S, what: object = "") -> T:
    """Poll until ``condition`` is truthy; return what it returned. The deadline is that of a machine of usual speed."""
    try:
        return waiting.until(condition, what or "what must come", quiet_s=deadline_s)
    except StalledError as error:
        raise AssertionError(str(error)) from error


async def until_async(condition: Callable[[], T], deadline_s: float = _PATIENCE_S, what: object = "") -> T:
    """The same without holding up the loop."""
    try:
        return await waiting.until_async(condition, what or "what must come", quiet_s=deadline_s)
    except StalledError as error:
        raise AssertionError(str(error)) from error


def end_with_parent() -> None:
    """Run in a child before it becomes the command: no orphans, however the tests end.

    The kernel means the *thread* that has started it: start processes from one that lives as long as they shall.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One ``bk ...`` in a process group of its own. What it prints goes to a file."""

    def __init__(self, name: str, directory: Path, *words: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.words = words
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("BK_")}
        self._environment |= environment or {}
        self._log = directory / f"{name}.log"
        self._from = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def said(self) -> str:
        """What it has printed since it was last started."""
        return self._log.read_bytes()[self._from :].decode(errors="replace") if self._log.exists() else ""

    def start(self) -> Process:
        self._from = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bookkeeper.admin", *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        return self

    def until_said(self, pattern: str, deadline_s: float = _PATIENCE_S) -> re.Match[str]:
        """Wait for a line; fails at once if the process ends without it."""

        def said() -> re.Match[str] | None:
            running = self.running
            found = re.search(pattern, self.said)
            assert found or running, f"{self.name} has ended without {pattern!r}: {self.said}"
            return found

        def missing() -> str:
            return f"{self.name} said {self.said!r}, not {pattern!r}: that line"

        try:
            found = waiting.until(said, missing, self._watched(), quiet_s=deadline_s)
        except StalledError as error:
            raise AssertionError(str(error)) from error
        assert found is not None
        return found

    def _watched(self) -> ProgressSource:
        return ProgressSource(logs=[self._log], files=[self._log.with_suffix("")], pids=[self.pid])

    def send(self, number: signal.Signals) -> None:
        if self.running:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait()

    def pause(self) -> None:
        """When this returns no thread of it runs any more."""
        self.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end; its exit status."""
        self.resume()
        self.send(number)
        return self.wait()

    def wait(self, deadline_s: float = _PATIENCE_S) -> int:
        if self._process is None:
            return 0
        try:
            return self._process.wait(deadline_s * stretch())
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            raise


def bk(*words: str, stdin: bytes | None = None, deadline_s: float = _PATIENCE_S) -> tuple[int, str, str]:
    """Run the command to its end: (status, what it printed, what it complained about)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BK_")}
    done = subprocess.run(
        [sys.executable, "-m", "bookkeeper.admin", *words],
        input=stdin,
        capture_output=True,
        timeout=deadline_s * stretch(),
        env=environment,
        check=False,
    )
    lines = done.stderr.decode(errors="replace").splitlines(keepends=True)
    errors = "".join(line for line in lines if not line.startswith("starting: "))
    return done.returncode, done.stdout.decode(errors="replace"), errors


def bk_json(*words: str) -> Any:
    """Run the command with ``--json``; what it printed, read."""
    status, out, err = bk(*words, "--json")
    assert status == 0, err
    return json.loads(out)


class Bookies:
    """A cluster whose bookies are processes. Metadata in SQLite unless an address is given."""

    def __init__(self, home: Path, names: tuple[str, ...] = ("b1", "b2", "b3"), metadata: str | None = None) -> None:
        from bookkeeper.meta import init_cluster

        self.home = home
        self.uri = metadata or f"sqlite://{home}/metadata.db"
        run(init_cluster(self.uri, system_seams()))
        self._settings = home / "bookie.toml"
        self._settings.write_text(f"[storage]\njournal_file_bytes = {_JOURNAL_BYTES}\nreserve_bytes = 1048576\n")
        self.each: dict[str, Process] = {}
        for name in names:
            self.add(name)
        self.await_serving()

    def add(self, name: str, *more: str, directory: Path | None = None) -> Process:
        """A bookie process, started and not waited for. ``more`` options go to the command."""
        words = ["bookie", "--metadata", self.uri, "--dir", str(directory or self.home / name), "--bookie-id", name]
        process = Process(name, self.home, *words, "--config", str(self._settings), *more)
        self.each[name] = process.start()
        return process

    def __getitem__(self, name: str) -> Process:
        return self.each[name]

    def await_serving(self) -> None:
        for process in self.each.values():
            if process.running:
                process.until_said(r"serves at \S+")

    def restart(self, name: str) -> None:
        self.each[name].start().until_said(r"serves at \S+")

    async def up_again(self, name: str) -> None:
        """The same without holding up the loop."""
        self.each[name].start()
        await asyncio.to_thread(self.each[name].until_said, r"serves at \S+")

    async def until_state(self, name: str, state: str, deadline_s: float = _PATIENCE_S) -> None:
        """Wait until ``bk bookies`` tells so; without holding up the loop."""
        await asyncio.to_thread(until, lambda: self.states().get(name) == state, deadline_s, f"{name} {state}")

    def forget(self, name: str) -> None:
        """End a bookie and take it out of the cluster: nobody knows it any more."""
        from bookkeeper.ids import BookieId
        from bookkeeper.meta import Metadata

        async def work() -> None:
            metadata = await Metadata.connect(self.uri, system_seams())
            await metadata.cookies.delete(BookieId(name), (await metadata.cookies.read(BookieId(name))).version)
            await metadata.close()

        self.each.pop(name).kill()
        run(work())
        until(lambda: name not in self.states(), 60, self.states)

    def all_up(self) -> None:
        """Everyone writable again: what a test that shares the cluster leaves behind."""
        for process in self.each.values():
            process.resume()
            if not process.running:
                process.start()
        self.await_serving()

        def writable() -> bool:
            states = self.states()
            return all(states.get(name) == "writable" for name in self.each)

        until(writable, what=self.states)

    def states(self) -> dict[str, str]:
        """Bookie -> writable, read-only or absent: the answer of ``bk bookies``, without the start of a process."""
        from bookkeeper.admin.bookies.bookies import present
        from bookkeeper.meta import Metadata

        async def work() -> list[dict[str, Any]]:
            metadata = await Metadata.connect(self.uri, system_seams())
            try:
                return await present(metadata)
            finally:
                await metadata.close()

        return {str(row["bookie"]): row["state"] for row in run(work())}

    def stop(self) -> None:
        for process in self.each.values():
            process.send(signal.SIGKILL)
        for process in self.each.values():
            process.wait()


@contextmanager
def bookies(home: Path, names: tuple[str, ...] = ("b1", "b2", "b3"), metadata: str | None = None) -> Iterator[Bookies]:
    """Bookies that are gone at the end."""
    cluster = Bookies(home, names, metadata)
    try:
        yield cluster
    finally:
        cluster.stop()
