"""The console script, which loads the command."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from bookkeeper.admin import console_script
from bookkeeper.admin.console_script import NamedOutput, name_standard_output
from bookkeeper.launchers.machine_speed import stretch

FULL = Path("/dev/full")
"""A device on which there is never any space."""

BUFFERING = pytest.mark.parametrize("unbuffered", ["", "1"])


def _bk(*words: str, output: int, unbuffered: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "bookkeeper.admin", *words],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        timeout=60 * stretch(),
    )
    return done.returncode, done.stderr


@BUFFERING
def test_a_full_disk_below_the_output_is_told_from_one_below_the_data(unbuffered: str) -> None:
    with FULL.open("wb") as full:
        status, said = _bk("bookies", "--help", output=full.fileno(), unbuffered=unbuffered)
    assert said == "bk: standard output: No space left on device (what was printed is not complete)\n"
    assert status == 1  # and not 120, which is Python's when it cannot print at its end


@BUFFERING
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["bookies", "--help"]])
def test_a_reader_that_has_gone_is_no_failure(words: list[str], unbuffered: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        assert _bk(*words, output=writes, unbuffered=unbuffered) == (0, "")
    finally:
        os.close(writes)


def test_a_server_goes_on_although_its_log_cannot_be_written() -> None:
    with FULL.open("wb") as full:
        output = NamedOutput(full.fileno(), lossy=True)
        assert [output.write(b"line\n") for _ in range(3)] == [5, 5, 5]


def test_a_server_on_a_full_disk_gets_as_far_as_its_settings(tmp_path: Path) -> None:
    """It ended before it had begun, at the first line of its log, with the status of a command that has failed."""
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bookkeeper.admin", "bookie", "--config", str(tmp_path / "none.toml")],
            stdout=full.fileno(),
            stderr=full.fileno(),
            timeout=60 * stretch(),
        )
    assert done.returncode == 78


def test_the_first_error_names_the_output_and_the_rest_goes_nowhere() -> None:
    with FULL.open("wb") as full:
        output = NamedOutput(full.fileno())
        assert output.write(b"") == 0
        with pytest.raises(OSError, match="No space left") as caught:
            output.write(b"one")
        assert caught.value.filename == "standard output"
        assert output.write(b"four") == 4


def test_what_it_takes_it_writes(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        text = io.TextIOWrapper(io.BufferedWriter(NamedOutput(file.fileno())), encoding="utf-8")
        text.write("äöü\n" * 10_000)
        text.close()
    assert (tmp_path / "out").read_text(encoding="utf-8") == "äöü\n" * 10_000


def test_an_output_that_is_not_the_process_s_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stdout", other)
        name_standard_output()
        assert sys.stdout is other


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_no_file_or_connection_takes_the_place_of_a_closed_stream(closed: str, tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/metadata.db"
    for words in (["init", "--json"], ["metadata", "show"]):
        command = [sys.executable, "-m", "bookkeeper.admin", *words, "-m", uri]
        script = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *command]
        done = subprocess.run(script, capture_output=True, text=True, timeout=60 * stretch())
        assert (done.returncode, done.stderr) == (0, ""), words
        assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", "")), words


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_an_encoding_lacks_is_shown_all_the_same(encoding: str, tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/журнал.db"
    for words in (["init"], ["metadata", "show"]):
        done = subprocess.run(
            [sys.executable, "-m", "bookkeeper.admin", *words, "-m", uri],
            capture_output=True,
            env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding},
            timeout=60 * stretch(),
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert "журнал".encode() in done.stdout or rb"\u0436" in done.stdout


INTERRUPTED_WHILE_IT_LOADS = """
import os, signal, sys
{before}
class Interrupts:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.argv = ["bk", "--version"]
from bookkeeper.admin.console_script import main
main()
"""


def _interrupted(before: str = "") -> subprocess.CompletedProcess[str]:
    script = INTERRUPTED_WHILE_IT_LOADS.format(before=before)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60 * stretch())


def test_ctrl_c_while_the_command_is_loaded_says_nothing() -> None:
    done = _interrupted()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_that_the_shell_has_it_ignore_stays_ignored() -> None:
    done = _interrupted("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("bk ")


def test_afterwards_ctrl_c_is_the_command_s(monkeypatch: pytest.MonkeyPatch) -> None:
    during: list[object] = []
    monkeypatch.setattr("bookkeeper.admin.cli.main", lambda: during.append(signal.getsignal(signal.SIGINT)))
    with mock.patch("signal.getsignal", wraps=signal.getsignal):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            console_script.main()
        finally:
            signal.signal(signal.SIGINT, before)
    assert during == [signal.default_int_handler]


@pytest.mark.parametrize(
    ("line", "serves"),
    [
        ("bookie --dir d", True),
        ("bookie", True),
        ("gateway webhdfs --listen h:1", True),
        ("gateway grpc", True),
        ("autorecovery --name healer", True),
        ("autorecovery run", True),
        ("standalone", True),
        ("zookeeper --port 1", True),
        ("bookie --help", False),
        ("bookie list-logs d", False),
        ("autorecovery status", False),
        ("gateway token name", False),
        ("bookies", False),
        ("", False),
    ],
)
def test_a_process_that_is_going_to_serve_says_from_its_first_line_on_what_it_does(line: str, serves: bool) -> None:
    assert console_script.is_server(line.split()) is serves
