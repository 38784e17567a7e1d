"""``bk autorecovery`` as a process of its own: it repairs what a lost bookie held, and stops when it is told to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import bookies, until


@pytest.mark.integration
def test_a_bookie_is_killed_for_good_and_its_ledgers_are_whole_again(tmp_path: Path) -> None:
    with bookies(tmp_path, ("b1", "b2", "b3", "b4")) as cluster:
        text = b"".join(b"%d\n" % i for i in range(200))
        for _ in range(6):
            assert bk("ledger", "append", "-m", cluster.uri, stdin=text).status == 0
        options = ["--lost-bookie-delay", "0", "--name", "healer"]
        command = [sys.executable, "-m", "bookkeeper.admin", "autorecovery", "-m", cluster.uri, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "autorecovery serves as healer\n"
            cluster["b1"].kill()

            def whole() -> bool:
                found = json.loads(bk("autorecovery", "status", "-m", cluster.uri, "--json").out)
                return found["processes"][0]["repaired"] > 0 and not found["marked"]

            until(whole)
            shown = bk("autorecovery", "status", "-m", cluster.uri)
            assert shown.status == 0 and "auditor: healer" in shown.out and "under-replicated: 0 ledgers" in shown.out
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert "auditor: none" in bk("autorecovery", "status", "-m", cluster.uri).out
