"""``bk autorecovery`` as a process of its own: it repairs what a lost bookie held, and stops when it is told to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bookkeeper.admin.commands import bk
from tests.bookkeeper.supervised import supervisor
from tests.integration.processes import bookies, until


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Leave no process behind when a test fails."""
    try:
        yield
    finally:
        process.kill()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return str(reply.read().decode())


@pytest.mark.parametrize(("http", "why"), [("0.0.0.0:0", "--http-insecure"), ("here", "expected HOST:PORT")])
def test_where_its_page_may_not_be(tmp_path: Path, http: str, why: str) -> None:
    done = bk("autorecovery", "run", "-m", f"sqlite://{tmp_path}/metadata.db", "--http", http)
    assert done.status == 1 and why in done.err


@pytest.mark.integration
def test_a_bookie_is_killed_for_good_and_its_ledgers_are_whole_again(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3", "b4")) as cluster:
        text = b"".join(b"%d\n" % i for i in range(200))
        for _ in range(6):
            assert bk("ledger", "append", "-m", cluster.uri, stdin=text).status == 0
        options = ["--lost-bookie-delay", "0", "--name", "healer", "--http", "127.0.0.1:0"]
        command = [sys.executable, "-m", "bookkeeper.admin", "autorecovery", "-m", cluster.uri, *options]
        with (
            supervisor() as systemd,
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=systemd.environment(30)) as process,
            ended(process),
        ):
            assert process.stdout is not None
            said = process.stdout.readline()
            page = said.removeprefix("autorecovery serves as healer, ").rstrip()
            assert page.startswith("http://127.0.0.1:"), said
            assert "WATCHDOG=1" in systemd.until("READY=1")
            cluster["b1"].kill()

            def whole() -> bool:
                found = json.loads(bk("autorecovery", "status", "-m", cluster.uri, "--json").out)
                return any(process["repaired"] for process in found["processes"]) and not found["marked"]

            until(whole)
            shown = bk("autorecovery", "status", "-m", cluster.uri)
            assert shown.status == 0 and "auditor: healer" in shown.out and "under-replicated: 0 ledgers" in shown.out
            until(lambda: "\nautorecovery_ledgers_waiting 0.0\n" in get(f"{page}/metrics"))
            assert "\nautorecovery_is_auditor 1.0\n" in get(f"{page}/metrics")
            assert json.loads(get(f"{page}/healthz"))["repaired"] > 0
            assert json.loads(get(f"{page}/readyz")) == {"status": "ok", "metadata": "connected"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            systemd.until("STOPPING=1")
        assert "auditor: none" in bk("autorecovery", "status", "-m", cluster.uri).out
