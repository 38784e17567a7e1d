"""The real ZooKeeper from PySpark's jars, as a child process: single node, on 127.0.0.1, for demos and tests.

It ends with its parent: the child is told by the kernel (PR_SET_PDEATHSIG) when the thread that started it is gone,
so start it from a thread that lives as long as it shall, normally the main one.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from bookkeeper.errors import ConfigError, MetadataUnavailableError
from bookkeeper.ids import Address
from bookkeeper.install import how_to_install
from bookkeeper.launchers.java import find_java
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until
from bookkeeper.meta.service_uri import SESSION_MAX_S
from bookkeeper.real import make_private, require_own

_HOST: Final = "127.0.0.1"
_FIRST_PORT: Final = 20_000
_JARS: Final = (
    "zookeeper-*",
    "zookeeper-jute-*",
    "slf4j-api-*",
    "snappy-java-*",
    "metrics-core-*",
    "netty-*",
    "commons-io-*",
)
_HEAP: Final = "-Xmx128m"
_END_WITH_PARENT: Final = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
_IF_PARENT_LIVES: Final = 'test "$PPID" = "$0" && exec "$@"'
_QUICK: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")


class ZooKeeperServer:
    """One standalone server. All methods block; call them outside of a loop, or in a thread.

    Args:
        directory: its data and log; kept between runs.
        port: where it listens on 127.0.0.1; 0 takes a free one.
        tick_ms: unit of its session time-outs: sessions last between 2 and 20 ticks.
        settings: more of its configuration, ``secureClientPort`` for instance.
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        tick_ms: int = 500,
        max_session_s: float = SESSION_MAX_S,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.address = Address(_HOST, port or free_port())
        self._tick_ms = tick_ms
        self._max_session_s = max_session_s
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """The address of a cluster in it."""
        return f"zk://{self.address}/ledgers"

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    @property
    def log(self) -> Path:
        """The file that holds its output."""
        return self.directory / "zookeeper.out"

    def start(self) -> ZooKeeperServer:
        """Start it and wait until it serves, as long as it makes progress.

        Raises:
            ConfigError: no Java, or no PySpark; or the port is taken, also by another ZooKeeper; or the directory is
                another user's.
            MetadataUnavailableError: it ended, or makes no progress; says what it said last.
        """
        self._require_free_port()
        require_own(str(self.directory))
        java = find_java().executable
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = self._write_config()
        options = ["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.4lw.commands.whitelist=ruok,srvr"]
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        command = [java, _HEAP, *_QUICK, *options, "-cp", class_path(), main, str(config)]
        for kept in (self.directory / "data").rglob("*"):  # readable to others in an earlier version
            make_private(str(kept))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                tied_to_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=0o077,  # it keeps ledgers' passwords
            )
        self._wait_until_serving()
        return self

    def stop(self, *, kill: bool = False, timeout_s: float = 10.0) -> None:
        """Stop it; with ``kill``, at once. Idempotent."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self._process.wait(timeout_s * stretch())
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Suspend it, with its connections open. When this returns, none of its threads runs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on after :meth:`pause`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> ZooKeeperServer:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _require_free_port(self) -> None:
        """Raises: ConfigError. Another ZooKeeper would be taken for this one, and of other programs it says nothing."""
        try:
            socket.create_server(self.address).close()
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise ConfigError(
                f"cannot listen at {self.address}: {why}; end the program that listens there, or choose another port"
            ) from error

    def _write_config(self) -> Path:
        settings = {
            "dataDir": self.directory / "data",
            "clientPortAddress": self.address.host,
            "clientPort": self.address.port,
            "tickTime": self._tick_ms,
            "minSessionTimeout": self._tick_ms,
            "maxSessionTimeout": int(self._max_session_s * 1000),
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            **self._settings,
        }
        path = self.directory / "zoo.cfg"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def _wait_until_serving(self) -> None:
        watched = ProgressSource(
            logs=[self.log], files=[self.directory], pids=[self.pid], runs=lambda: self.pid is not None
        )
        try:
            until(self._serves, "ZooKeeper", watched)
        except StalledError as error:
            self.stop(kill=True)
            said = self.log.read_text(errors="replace")[-2000:]
            raise MetadataUnavailableError(f"ZooKeeper did not begin to serve at {self.address}: {said}") from error

    def _serves(self) -> bool:
        try:
            with socket.create_connection(self.address, timeout=stretch()) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while chunk := connection.recv(4096):
                    answer += chunk
                return b"Mode: standalone" in answer
        except OSError:
            return False


def class_path() -> str:
    """The jars of PySpark that ZooKeeper's server needs.

    Raises:
        ConfigError: PySpark is not installed, or has no ZooKeeper.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError(f"ZooKeeper comes with PySpark, which is not installed: {how_to_install('spark')}")
    jars = Path(spec.origin).parent / "jars"
    found = [str(jar) for pattern in _JARS for jar in sorted(jars.glob(f"{pattern}.jar"))]
    if not any(Path(jar).name.startswith("zookeeper-") for jar in found):
        raise ConfigError(f"no ZooKeeper among the jars of PySpark in {jars}")
    return os.pathsep.join(dict.fromkeys(found))


def tied_to_parent(command: Sequence[str]) -> list[str]:
    """Wrap the command so that the kernel ends the process when the thread that started it is gone."""
    if (setpriv := _setpriv()) is not None:
        return [setpriv, "--pdeathsig", "KILL", "/bin/sh", "-c", _IF_PARENT_LIVES, str(os.getpid()), *command]
    return [sys.executable, "-ISc", _END_WITH_PARENT, str(os.getpid()), *command]


@cache
def _setpriv() -> str | None:
    """The path of util-linux's setpriv, twenty times as fast as an interpreter. None: not here, or too old."""
    path = shutil.which("setpriv")
    if path is None or subprocess.run([path, "--pdeathsig", "KILL", "true"], capture_output=True).returncode:
        return None
    return path


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens, and which the kernel gives to nobody of its own accord.

    It lies below those that outgoing connections and listeners on port 0 are given, so that it is still free when
    whoever asked for it has started. No process hears of one port twice.
    """
    for number in _ports:
        with socket.socket() as probe:
            try:
                probe.bind((_HOST, number))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ConfigError(f"there is no free port on {_HOST}: end a program that listens there")


def _candidates() -> Iterator[int]:
    """Yield ports to try. Each process begins at another one. 0 is the kernel's choice, where it keeps all ports for
    itself.

    It is no generator: several threads may ask at the same time.
    """
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest = 32768
    count = lowest - _FIRST_PORT
    begin = _FIRST_PORT + os.getpid() * 0x9E3779B1 % max(count, 1)
    own = [*range(begin, lowest), *range(_FIRST_PORT, begin)] if count > 1000 else []
    return itertools.chain(own, itertools.repeat(0, 1000))


_ports: Final = _candidates()
