"""A cluster, gateways as processes, and stubs that know nothing of this package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookkeeper.launchers.machine_speed import stretch

ROOT = Path(__file__).resolve().parents[3]
STARTED_S = 60.0


class GatewayProcess:
    """``bk gateway grpc`` in a process of its own."""

    def __init__(self, metadata: str, log: Path, *options: str) -> None:
        command = "from spark_wal.commands import gateway; gateway()"
        self._log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-c", command, "grpc", "--metadata", metadata, "--listen", "127.0.0.1:0", *options],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("grpc://"):
            raise AssertionError(f"the gateway did not start: {line}{log.read_text()}")
        self.address = line.split()[0].removeprefix("grpc://")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """SIGTERM, and its exit status."""
        self._process.terminate()
        return self._process.wait(30)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def gateway(metadata: str, log: Path, *options: str) -> Iterator[GatewayProcess]:
    """A gateway that ends with the block."""
    process = GatewayProcess(metadata, log, *options)
    try:
        yield process
    finally:
        process.close()


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """Bookies and a SQLite store in a process of their own; the metadata URI."""
    log = directory.parent / "standalone.log"
    command = "from bookkeeper.admin.cli import main; main()"
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                command,
                "standalone",
                "--dir",
                str(directory),
                "--webhdfs-port",
                "0",
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=sink,
            stderr=sink,
        )
    try:
        deadline = time.monotonic() + STARTED_S
        while log.read_text().count(" serves at ") < 3:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield f"sqlite:///{directory}/metadata.db"
    finally:
        process.terminate()
        process.wait(30)


def make_stub(directory: Path) -> None:
    """Generate a client of the protocol, as any user does."""
    directory.mkdir(parents=True)
    proto = ROOT / "segments" / "protocol"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto}"]
    out = [f"--python_out={directory}", f"--grpc_python_out={directory}", "segments.proto"]
    subprocess.run([*command, *out], check=True)


def run_foreign(program: str, stub: Path, *arguments: str) -> str:
    """Run a program that has the stub, and nothing of ours; return what it prints."""
    guard = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('bookkeeper', 'segments', 'journal_manager'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", guard + program, str(stub), *arguments],
        cwd=stub,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100 * stretch(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
