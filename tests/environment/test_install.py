from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.environment.install import ONLY_SOURCE, InstallFailedError, Job, Teller, run_jobs, shared_out
from tests.environment.locked import LOCK, read_lock


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def job(directory: Path, script: str, name: str = "packages") -> Job:
    log = directory / f"{name}.log"
    log.touch()
    return Job(name, [sys.executable, "-c", script], log, directory / name)


def test_every_package_of_the_lock_is_installed_once() -> None:
    packages = read_lock(LOCK.read_text())
    share = shared_out(packages)
    parts = [*share.tools, *share.wheels, *share.large, *share.small, *share.java]
    assert sorted(each.lines for each in parts) == sorted(each.lines for each in packages)
    assert {each.name for each in [*share.large, *share.small]} == ONLY_SOURCE


def test_without_a_terminal_there_is_a_line_every_fifteen_seconds(tmp_path: Path) -> None:
    screen, clock = Screen(terminal=False), Clock()
    teller = Teller(screen, clock)
    running = job(tmp_path, "import time; time.sleep(600)")
    running.start()
    running.log.write_text("  Downloading pyspark-4.3.0.tar.gz (455.9 MB)\n")
    (running.scratch / "pip-unpack").mkdir()
    (running.scratch / "pip-unpack" / "pyspark-4.3.0.tar.gz").write_bytes(bytes(3_000_000))
    assert running.process is not None
    try:
        for second in range(31):
            clock.at = float(second)
            teller.look([running])
    finally:
        running.process.kill()
        running.process.wait()
    line = "packages: fetches pyspark-4.3.0.tar.gz (3 of 456 MB; 0 files, 0 MB before)"
    assert screen.getvalue() == f"   15 s  {line}\n   30 s  {line}\n"


def test_on_a_terminal_one_line_changes(tmp_path: Path) -> None:
    screen, clock = Screen(terminal=True), Clock()
    teller = Teller(screen, clock)
    running = job(tmp_path, "import time; time.sleep(600)")
    running.start()
    assert running.process is not None
    try:
        for second in range(3):
            clock.at = float(second)
            teller.look([running])
    finally:
        running.process.kill()
        running.process.wait()
    assert screen.getvalue().count("\n") == 0
    assert screen.getvalue().count("\r\x1b[K") == 2


def test_jobs_run_side_by_side_and_the_first_that_fails_ends_the_others(tmp_path: Path) -> None:
    endless = job(tmp_path, "import time; time.sleep(600)", "endless")
    fails = job(tmp_path, "raise SystemExit('no compiler')", "fails")
    with pytest.raises(InstallFailedError, match=r"(?s)fails failed \(status 1\).*no compiler"):
        run_jobs([endless, fails], Teller(Screen(terminal=False)), pause_s=0.01)
    assert endless.status not in (None, 0)


def test_jobs_that_end_well_say_nothing(tmp_path: Path) -> None:
    screen = Screen(terminal=False)
    run_jobs([job(tmp_path, "", name) for name in ("a", "b")], Teller(screen), pause_s=0.01)
    assert screen.getvalue() == ""
