"""The parent of a cluster: what it relays, and what it does when children end. (As a command: test_servers.)"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path

import pytest

from bookkeeper import real
from bookkeeper.admin.servers.standalone import Standalone
from bookkeeper.admin.servers.standalone_plan import StandalonePlan
from bookkeeper.errors import ConfigError, DirectoryLockedError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import memory, system_seams
from tests.bookkeeper.supervised import supervisor
from tests.integration.processes import end_with_parent

PROGRAM = """
import os, signal, sys
from pathlib import Path
from bookkeeper.admin.servers.standalone import Standalone
from bookkeeper.admin.servers.standalone_plan import StandalonePlan
from bookkeeper.errors import ConfigError

{first}
def live():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("this serves", flush=True)
    while True:
        signal.pause()

class Family(Standalone):
    def _init(self):
        {init}

    def _bookie(self, name):
        times = Path(sys.argv[1], name + ".times")
        before = times.stat().st_size if times.exists() else 0
        with times.open("a") as file:
            file.write("x")
        {bookie}

    def _heal(self):
        live()

wanted = {wanted}
plan = StandalonePlan(
    Path(sys.argv[1]), bookies=2, webhdfs_port={port}, command_group="no.such.group", gateway_wanted=wanted
)
raise SystemExit(Family(plan, pause_s=0.001).run())
"""

TELLS_THE_THIRD = """
fork, forks = os.fork, []

def fork_and_tell():
    forks.append(pid := fork())
    if not pid and len(forks) == 3:  # the first makes the cluster
        os.kill(os.getpid(), signal.SIGTERM)
    return pid

os.fork = fork_and_tell
"""
"""The second bookie is told to stop before it has done anything."""


class Parent:
    """A family whose members do this, as a process. What the parent says comes in one stream."""

    def __init__(
        self,
        directory: Path,
        *,
        first: str = "",
        init: str = "return 0",
        bookie: str,
        port: int | None = None,
        wanted: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        directory.mkdir(exist_ok=True)
        script = PROGRAM.format(first=first, init=init, bookie=bookie, port=port, wanted=wanted)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=end_with_parent,
            env=environment,
        )
        self.said = ""

    def until(self, pattern: str) -> re.Match[str]:
        """Read lines until one has it; fails if there are no more."""
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()) != "":
            self.said += line
            if (found := re.search(pattern, line)) is not None:
                return found
        raise AssertionError(f"ended without {pattern!r}: {self.said}")

    def end(self, number: signal.Signals | None = None) -> int:
        """Its status, at the end of what it says; with a signal, after that."""
        if number is not None:
            os.kill(self.process.pid, number)
        self.said += self.process.communicate(timeout=60 * stretch())[0]
        return self.process.returncode


def test_whole_lines_are_relayed_with_the_name_of_who_said_them_and_the_end_is_awaited(tmp_path: Path) -> None:
    say = "print(name, 'says one'); print('and two', end=''); sys.stdout.flush(); print(); live()"
    with supervisor() as systemd:
        family = Parent(tmp_path, bookie=say, environment=systemd.environment())
        family.until("export BK_METADATA")
        assert systemd.until("READY=1") == ["READY=1"], "its children tell nothing"
        assert family.end(signal.SIGINT) == 0
        assert systemd.until("STOPPING=1") == ["STOPPING=1"]
    said = [line for line in family.said.splitlines() if re.match(r"b\d", line)]
    assert sorted(said) == [
        "b1       and two",
        "b1       b1 says one",
        "b1       this serves",
        "b2       and two",
        "b2       b2 says one",
        "b2       this serves",
    ]


def test_who_ends_by_itself_is_named_and_started_again_later_each_time(tmp_path: Path) -> None:
    """A child that ended was reported and stayed away: the cluster went on without, until somebody looked."""
    bookie = "live() if name == 'b1' or before == 2 else (print('it serves'), sys.stdout.flush(), os._exit(3 + before))"
    family = Parent(tmp_path, bookie=bookie)
    family.until(r"b2       has ended with status 3; it is started again in 0\.001 s")
    family.until(r"b2       has ended with status 4; it is started again in 0\.002 s")
    family.until(r"b2       this serves")
    assert family.end(signal.SIGTERM) == 0, "all are up again"
    assert "b1       has ended" not in family.said


def test_who_is_killed_is_said_to_be(tmp_path: Path) -> None:
    family = Parent(tmp_path, bookie="live() if before or name == 'b1' else os.kill(os.getpid(), signal.SIGKILL)")
    family.until(r"b2       has ended by the signal SIGKILL; it is started again")
    family.until("b2       this serves")
    assert family.end(signal.SIGTERM) == 0


def test_it_is_ready_without_one_that_cannot_start_and_goes_on_trying(tmp_path: Path) -> None:
    family = Parent(tmp_path, bookie="live() if name == 'b1' else exec('raise ConfigError(\"no good\")')")
    assert family.until(r"ready after \S+ s( without b2)?, everything is in")[1] == " without b2"
    family.until("b2       bk: no good")
    assert family.end(signal.SIGTERM) == 1, "one was down when it was told to stop"


def test_who_is_told_to_stop_before_it_serves_has_not_failed(tmp_path: Path) -> None:
    family = Parent(tmp_path, bookie="print('begins', flush=True); signal.pause()")
    for _ in range(2):
        family.until(r"b\d       begins")
    assert family.end(signal.SIGTERM) == 0
    assert "has ended" not in family.said


def test_who_is_told_to_stop_in_its_first_moment_stops(tmp_path: Path) -> None:
    """The handler that a child still had from its parent took the signal, and the child served until it was killed."""
    family = Parent(tmp_path, first=TELLS_THE_THIRD, bookie="live()")
    family.until(r"b2       has ended by the signal SIGTERM; it is started again")
    family.until(r"b2       this serves")
    assert family.end(signal.SIGTERM) == 0


def test_if_no_bookie_can_start_it_ends(tmp_path: Path) -> None:
    family = Parent(tmp_path, bookie="raise ConfigError('no good')")
    assert family.end() == 1
    assert "bk: no bookie could be started" in family.said and "ready after" not in family.said


@pytest.mark.rule("F1", "F9")
@pytest.mark.parametrize(
    "end",
    ["raise MetadataUnavailableError('no answer')", "raise SessionExpiredError('ended')", "os.kill(os.getpid(), 9)"],
)
def test_bookies_that_lose_the_store_or_are_killed_at_their_first_start_are_started_again(
    tmp_path: Path, end: str
) -> None:
    """ "No bookie could be started", it said, and ended: on a slow machine all may lose their sessions at once."""
    first = "from bookkeeper.errors import MetadataUnavailableError, SessionExpiredError"
    family = Parent(tmp_path, first=first, bookie=f"live() if before else exec({end!r})")
    family.until(r"ready after \S+ s, everything is in")
    assert family.end(signal.SIGTERM) == 0
    assert "no bookie could be started" not in family.said
    assert {(tmp_path / f"{name}.times").read_text() for name in ("b1", "b2")} == {"xx"}


@pytest.mark.rule("F1", "F9")
def test_a_cluster_that_is_not_made_because_the_store_is_busy_is_made_again(tmp_path: Path) -> None:
    first = """
from bookkeeper.errors import MetadataUnavailableError
def busy(file):
    if not file.exists():
        file.touch()
        raise MetadataUnavailableError('no answer')
    return 0
"""
    family = Parent(tmp_path, first=first, init="return busy(Path(sys.argv[1], 'once'))", bookie="live()")
    family.until(r"ready after \S+ s, everything is in")
    assert family.end(signal.SIGTERM) == 0


def test_nothing_is_started_if_the_cluster_cannot_be_made(tmp_path: Path) -> None:
    family = Parent(tmp_path, init="raise ConfigError('no good')", bookie="print('started'); return 0")
    assert family.end() == 1
    assert family.said == "init     bk: no good\n"


@pytest.mark.parametrize("wanted", [False, True])
def test_without_the_gateway_s_package_the_bookies_are_started_unless_it_was_asked_for(
    tmp_path: Path, wanted: bool
) -> None:
    """Fifty lines of traceback, and then *ready*, with the address of a gateway that was not there."""
    family = Parent(tmp_path, bookie="live()", port=29870, wanted=wanted)
    family.until("gateway  bk: not started: this needs the Python package spark_wal, which is not installed")
    if not wanted:
        assert family.until(r"ready after \S+ s( without gateway)?")[1] == " without gateway"
    assert family.end(None if wanted else signal.SIGTERM) == int(wanted)
    assert "checkpointLocation" not in family.said and "Traceback" not in family.said
    assert "gateway  has ended" not in family.said, "nothing is gained by starting it again"


def test_a_port_that_is_taken_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """The gateway's child failed, and the parent waited for it to serve for ever."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        plan = StandalonePlan(tmp_path / "new", bookies=1, webhdfs_port=port, command_group="g")
        with pytest.raises(ConfigError, match=rf"port {port} of 127\.0\.0\.1.*--webhdfs-port"):
            Standalone(plan).run()
    assert not (tmp_path / "new").exists()


@pytest.mark.rule("X60")
@pytest.mark.parametrize("tokens", [True, False])
def test_a_bookie_that_is_shown_tokens_leaves_no_core_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: bool
) -> None:
    """Cause: of these bookies only those with TLS did so, and not those with the HTTP API."""
    for name in memory.SECRETS:
        monkeypatch.delenv(name, raising=False)
    dumps: list[str] = []
    monkeypatch.setattr(real, "no_core_dumps", lambda: dumps.append("off"))
    monkeypatch.setattr(real, "run", Coroutine.close)
    api = {"token_file": str(tmp_path / "tokens")}
    plan = StandalonePlan(
        tmp_path,
        bookies=1,
        webhdfs_port=None,
        command_group="",
        http_api_port=8080 if tokens else None,
        http_api=api if tokens else {},
    )
    Standalone(plan)._bookie("b1")
    assert dumps == (["off"] if tokens else [])


def test_a_directory_is_for_one_at_a_time(tmp_path: Path) -> None:
    lock = system_seams().disk.lock(str(tmp_path / "standalone.lock"))
    plan = StandalonePlan(tmp_path, bookies=1, webhdfs_port=None, command_group="g")
    with pytest.raises(DirectoryLockedError, match=f"another bk standalone runs on {tmp_path}"):
        Standalone(plan).run()
    lock.release()
    assert os.listdir(tmp_path) == ["standalone.lock"]


def test_who_does_not_listen_any_more_ends_it(tmp_path: Path) -> None:
    family = Parent(tmp_path, bookie="live()")
    family.until("export BK_METADATA")  # the last that it says before something happens
    assert family.process.stdout is not None
    family.process.stdout.close()
    task = f"/proc/{family.process.pid}/task/{family.process.pid}/children"
    os.kill(int(Path(task).read_text().split()[0]), signal.SIGKILL)  # there is something to say about that
    assert family.process.wait(60) == 1
