"""``bk bookie`` and ``python -m bookkeeper.bookie``."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.bookie import command
from bookkeeper.bookie.command import _places, _remedy
from bookkeeper.bookie.config import BookieConfig, config_from
from bookkeeper.bookie.process import EXIT_CONFIG
from bookkeeper.errors import ConfigError
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import run as run_async
from examples.certificates import Authority
from tests.bookkeeper.admin.commands import bk
from tests.bookkeeper.bookie.processes import complaints, new_process
from tests.integration.processes import Process, until


@pytest.mark.integration
@pytest.mark.rule("X1")
def test_what_is_wrong_is_said_and_the_exit_code_tells(tmp_path: Path) -> None:
    process = new_process(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "bookkeeper.bookie", *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, complaints(done.stderr)

    code, errors = run("--directory", str(tmp_path))
    assert (code, "metadata_uri" in errors) == (78, True)
    assert errors == "bk: a bookie needs --metadata URI, or metadata_uri in a --config FILE\n"
    good = ("--metadata", f"sqlite:///{tmp_path}/meta.db", "--directory", f"{tmp_path}/bookie")
    code, errors = run(*good, "--listen", "0.0.0.0:0")
    assert (code, "insecure" in errors, "--tls-client-ca" in errors) == (78, True, True)
    code, errors = run(*good, "--tls-cert", f"{tmp_path}/nothing.pem")
    assert (code, "nothing.pem" in errors) == (78, True)
    code, errors = run(*good, "--tls-client-ca", f"{tmp_path}/nothing.pem")
    assert (code, "tls.cert is missing" in errors) == (78, True)
    code, errors = run(*good, "--metadata-session", "0.5")
    assert (code, "at least 1 and at most 300" in errors) == (78, True)
    process.start("--metadata-session", "100")
    assert 66 < process.lease_end() - time.monotonic() <= 100  # it is renewed after a third
    code, errors = run(*good)
    assert (code, "another process" in errors) == (78, True)
    (settings := tmp_path / "small.toml").write_text("[storage]\nreserve_bytes = 1048576\n")
    code, errors = run(*good, "--config", str(settings))
    assert (code, "reserve_bytes is 1048576, and with the other sizes" in errors) == (78, True), errors
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for option in ("--http", "--listen"):
            code, errors = run(*good[:2], "--directory", f"{tmp_path}/other", "--bookie-id", "other", option, address)
            assert (code, errors.startswith("bk: "), address in errors) == (1, True, True)
            assert "other port" in errors or "another --http" in errors
    known = bk("bookies", "-m", good[1], "--json").document
    assert "other" not in {row["bookie"] for row in known}, "a start that failed left a bookie that is absent"
    assert process.end(signal.SIGINT)[0] == 0


HASTY = """
import os, signal
from bookkeeper.bookie import process
from bookkeeper.bookie.command import bookie

def echo(text, **more):
    print(text, flush=True)
    if " serves at " in text:
        os.kill(os.getpid(), signal.SIGTERM)

process.click.echo = echo
bookie()
"""


@pytest.mark.integration
def test_a_signal_at_the_moment_it_says_that_it_serves_stops_it_well(tmp_path: Path) -> None:
    new_process(tmp_path)
    words = ("--metadata", f"sqlite:///{tmp_path}/meta.db", "--directory", f"{tmp_path}/bookie")
    done = subprocess.run([sys.executable, "-c", HASTY, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert " serves at " in done.stdout.splitlines()[-1]


@pytest.mark.integration
@pytest.mark.rule("X6")
def test_on_sighup_new_certificates_are_used(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    made = old.server()
    new_process(tmp_path)
    uri = f"sqlite:///{tmp_path}/meta.db"
    words = ("--metadata", uri, "--dir", f"{tmp_path}/b", "--tls-cert", made.cert, "--tls-key", made.key)
    bookie = Process("bookie", tmp_path, "bookie", *words, "--verbose").start()

    async def append(ca: str) -> None:
        async with BookKeeper.connect(uri, config=ClientConfig(tls=TlsConfig(ca=ca))) as client:
            ledger = await client.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
            await ledger.append(b"x")
            await ledger.close()

    try:
        bookie.until_said("serves at")
        run_async(append(old.ca))
        renewed = new.server()
        Path(made.cert).write_bytes(Path(renewed.cert).read_bytes())
        Path(made.key).write_bytes(Path(renewed.key).read_bytes())
        os.kill(bookie.pid, signal.SIGHUP)
        until(lambda: "the TLS files have changed" in bookie.said)
        run_async(append(new.ca))
    finally:
        bookie.stop()


@pytest.mark.parametrize(
    ("ledger_dirs", "journal_dirs", "options"),
    [
        ((), (), {}),
        ((), ("/j",), {"storage": {"journal_dir": "/j"}}),
        (("/a", "/b"), (), {"ledger_dirs": ("/a", "/b")}),
        (("/a", "/b"), ("/j", "/k"), {"ledger_dirs": ("/a", "/b"), "journal_dirs": ("/j", "/k")}),
    ],
)
def test_directories_of_the_command_line_are_options(
    ledger_dirs: tuple[str, ...], journal_dirs: tuple[str, ...], options: dict[str, object]
) -> None:
    assert _places(ledger_dirs, journal_dirs) == options


@pytest.mark.parametrize("place", ["/etc/passwd", "/etc/passwd/b", "/proc/no/such"])
def test_a_directory_that_cannot_be_one_is_the_configurations_fault(tmp_path: Path, place: str) -> None:
    """Cause: it ended with 1, after which a supervisor starts it again for ever; the runbook says 78."""
    uri = f"sqlite:///{tmp_path}/metadata.db"
    assert bk("init", "--metadata", uri).status == 0
    said = bk("bookie", "--metadata", uri, "--dir", place)
    complaints = [line for line in said.err.splitlines() if not line.startswith("starting: ")]
    assert (said.status, len(complaints), "Errno" in said.err) == (78, 1, False), said.err
    assert place.partition("/no")[0] in said.err


def test_journals_without_ledger_directories_are_refused(tmp_path: Path) -> None:
    good = ("bookie", "--metadata", f"sqlite:///{tmp_path}/meta.db", "--dir", tmp_path / "b")
    said = bk(*good, "--journal-dir", tmp_path / "j", "--journal-dir", tmp_path / "k")
    assert said.status == 78 and "several --journal-dir need as many --ledger-dir" in said.err
    said = bk(*good, "--ledger-dir", tmp_path / "a", "--journal-dir", tmp_path / "j", "--journal-dir", tmp_path / "k")
    assert said.status == 78 and "journal_dirs must name a directory for each of ledger_dirs: 2 for 1" in said.err


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "make room on this disk"), (errno.EDQUOT, "make room"), (errno.EROFS, "writable"), (errno.EIO, "")],
)
def test_a_disk_that_takes_no_bytes_is_told_with_what_helps(number: int, words: str) -> None:
    said = _remedy(OSError(number, os.strerror(number), "/disk"))
    assert words in said and bool(said) == bool(words)


@pytest.mark.rule("X44")
def test_root_needs_a_word_where_other_machines_reach_the_bookie(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def config(**options: Any) -> BookieConfig:
        given = {"metadata_uri": f"sqlite://{tmp_path}/m", "directory": str(tmp_path / "b")}
        return config_from({**given, "listen": "10.0.0.1:3181", "insecure": True, **options})

    command._require_user(config(), 1000)
    assert not caplog.records
    with pytest.raises(ConfigError, match=r"10.0.0.1:3181. does not run as root: .*--allow-root"):
        command._require_user(config(), command.ROOT)
    assert not caplog.records
    command._require_user(config(allow_root=True), command.ROOT)
    command._require_user(config(listen="127.0.0.1:0"), command.ROOT)
    assert [record.getMessage() for record in caplog.records] == [
        "this bookie runs as root; a user of its own can do less harm, and is enough"
    ]


@pytest.mark.rule("X44")
def test_the_unit_for_systemd_gives_a_bookie_a_user_and_no_more_than_it_needs() -> None:
    page = Path(__file__).parents[3] / "deploy/systemd/bookie.service"
    settings = dict(line.split("=", 1) for line in page.read_text().splitlines() if "=" in line and line[0] != "#")
    assert settings["User"] == "bookie"
    assert settings["NoNewPrivileges"] == "yes" and settings["CapabilityBoundingSet"] == ""
    assert settings["ProtectSystem"] == "strict" and settings["UMask"] == "0077"
    assert settings["RestartPreventExitStatus"] == str(EXIT_CONFIG)
    words = settings["ExecStart"].split()
    assert words[1] == "bookie"
    assert words[2] in {name for option in command.bookie.params for name in option.opts}
