"""``bk bookie`` and ``python -m bookkeeper.bookie``."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bookkeeper.bookie.processes import new_process


@pytest.mark.integration
@pytest.mark.rule("X1")
def test_what_is_wrong_is_said_and_the_exit_code_tells(tmp_path: Path) -> None:
    process = new_process(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "bookkeeper.bookie", *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    code, errors = run("--directory", str(tmp_path))
    assert (code, "metadata_uri" in errors) == (78, True)
    good = ("--metadata", f"sqlite:///{tmp_path}/meta.db", "--directory", f"{tmp_path}/bookie")
    code, errors = run(*good, "--listen", "0.0.0.0:0")
    assert (code, "insecure" in errors, "--tls-client-ca" in errors) == (78, True, True)
    code, errors = run(*good, "--tls-cert", f"{tmp_path}/nothing.pem")
    assert (code, "nothing.pem" in errors) == (78, True)
    code, errors = run(*good, "--tls-client-ca", f"{tmp_path}/nothing.pem")
    assert (code, "tls.cert names a file" in errors) == (78, True)
    process.start()
    code, errors = run(*good)
    assert (code, "another process" in errors) == (78, True)
    assert process.end(signal.SIGINT)[0] == 0
