"""A cluster on one machine: bookies and gateway as children of one process, metadata in SQLite.

The children are forked from a parent that has imported everything and started nothing: no loop, no
thread, no connection (P9). That saves each of them the start of an interpreter. They end with their
parent, and the parent ends when it is told to; a child that ends by itself is reported, and the others
go on: losing one bookie of three is what a cluster is for.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import click

from bookkeeper import real
from bookkeeper.bookie.config import config_from
from bookkeeper.errors import BookKeeperError, ClusterExistsError, ConfigError
from bookkeeper.meta import init_cluster

_PR_SET_PDEATHSIG: Final = 1
_SHARED: Final = ("bookkeeper.bookie.process", "bookkeeper.meta.sqlite")
"""What every bookie loads: once for all, before they are forked."""
_STOP_S: Final = 15.0
"""How long children may take to stop before they are killed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. ``webhdfs_port`` None: no gateway."""

    directory: Path
    bookies: int
    webhdfs_port: int | None
    command_group: str
    tls: Mapping[str, str] = field(default_factory=dict)
    """``cert``, ``key``, ``client_ca`` of the bookies, and ``ca``, whom the gateway trusts. Empty: all in clear."""

    def __post_init__(self) -> None:
        if self.tls and not {"cert", "ca"} <= self.tls.keys():
            raise ConfigError("required: TLS needs both --tls-cert (the bookies') and --tls-ca (who vouches for it)")

    @property
    def bookies_tls(self) -> Mapping[str, str]:
        """The bookies' table ``[tls]``."""
        return {name: file for name, file in self.tls.items() if name != "ca"}

    @property
    def clients_tls(self) -> Mapping[str, str]:
        """What clients find in their environment."""
        shown = ("ca", "cert", "key") if "client_ca" in self.tls else ("ca",)
        return {f"BK_TLS_{name.upper()}": self.tls[name] for name in shown if name in self.tls}

    @property
    def metadata(self) -> str:
        return f"sqlite://{self.directory}/metadata.db"


@dataclass(slots=True)
class _Child:
    name: str
    output: int
    ready: bool = False
    rest: bytes = b""


class Standalone:
    """Runs a :class:`Plan` until SIGINT or SIGTERM."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._children: dict[int, _Child] = {}
        self._began = time.monotonic()
        self._stopping = False
        self._status = 0

    def run(self) -> int:
        """Start all, relay what they say, stop all; the exit status: 0, or 1 if one ended by itself."""
        self._plan.directory.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        self._fork("init", self._init)
        for module in _SHARED:
            import_module(module)
        self._relay(until_ended=True)
        if self._status:
            return self._status
        self._children.clear()
        for number in range(1, self._plan.bookies + 1):
            self._fork(f"b{number}", lambda name=f"b{number}": self._bookie(name))  # type: ignore[misc]
        if self._plan.webhdfs_port is not None:
            self._start_gateway(self._plan.webhdfs_port)
        self._relay()
        return self._status

    # -- what the children do -----------------------------------------------------------------------------

    def _init(self) -> int:
        with contextlib.suppress(ClusterExistsError):
            real.run(init_cluster(self._plan.metadata, real.system_seams()))
        return 0

    def _bookie(self, name: str) -> int:
        from bookkeeper.bookie.process import serve

        directory = self._plan.directory / name
        options: dict[str, object] = {"metadata_uri": self._plan.metadata, "directory": str(directory)}
        if self._plan.tls:
            options["tls"] = self._plan.bookies_tls
        config = config_from({**options, "bookie_id": name})
        return real.run(serve(config, real.system_seams()))

    def _start_gateway(self, port: int) -> None:
        """The gateway comes through the entry points: this package does not know the ones above it."""
        found = [entry for entry in entry_points(group=self._plan.command_group) if entry.name == "gateway"]
        try:
            command = found[0].load() if found else None
        except ModuleNotFoundError as missing:
            click.echo(f"no gateway: it needs the Python package {missing.name!r}")
            return
        if command is None:
            click.echo("no gateway: the package spark_wal is not installed")
            return
        arguments = ["webhdfs", "--metadata", self._plan.metadata, "--listen", f"127.0.0.1:{port}"]

        def serve() -> int:
            os.environ.update(self._plan.clients_tls)
            return command.main(arguments, prog_name="bk gateway", standalone_mode=False) or 0

        self._fork("gateway", serve)

    def _fork(self, name: str, work: Callable[[], int]) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            os.close(writing)
            os.set_blocking(reading, False)
            self._children[pid] = _Child(name, reading)
            return
        _become_child(parent, writing)
        try:
            status = work()
        except (BookKeeperError, OSError, click.ClickException) as error:
            click.echo(f"error: {error}")
            status = 1
        finally:
            sys.stdout.flush()
        os._exit(status)

    # -- what the parent does -----------------------------------------------------------------------------

    def _relay(self, *, until_ended: bool = False) -> None:
        """Pass on what children print until all have ended."""
        selector = selectors.DefaultSelector()
        for child in self._children.values():
            selector.register(child.output, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select(0.5):
                child = key.data
                if not self._read(child):
                    selector.unregister(child.output)
                    os.close(child.output)
            self._reap(quiet=until_ended)
        while self._children and not self._reap(quiet=until_ended):
            time.sleep(0.01)

    def _read(self, child: _Child) -> bool:
        """Relay whole lines; False at the end of the output."""
        try:
            data = os.read(child.output, 65536)
        except BlockingIOError:
            return True
        *lines, child.rest = (child.rest + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            click.echo(f"{child.name:8} {text}")
            if " serve" in text and not child.ready:
                child.ready = True
                if all(other.ready for other in self._children.values()):
                    self._tell_ready()
        return bool(data)

    def _tell_ready(self) -> None:
        click.echo(f"\nready after {time.monotonic() - self._began:.1f} s, everything is in {self._plan.directory}")
        for name, value in {"BK_METADATA": self._plan.metadata, **self._plan.clients_tls}.items():
            click.echo(f"  export {name}={value}")
        if self._plan.webhdfs_port is not None:
            click.echo(f"  checkpointLocation=webhdfs://127.0.0.1:{self._plan.webhdfs_port}/NAME")
        sys.stdout.flush()

    def _reap(self, *, quiet: bool = False) -> bool:
        """Take note of children that have ended; True when there are none left."""
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            child = self._children.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            if child is not None and not self._stopping and (code or not quiet):
                self._status = 1
                click.echo(f"{child.name:8} has ended with status {code}; the others go on", err=True)
        return True

    def _stop(self, *_: object) -> None:
        if self._stopping:
            return
        self._stopping = True
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        signal.signal(signal.SIGALRM, self._kill)
        signal.setitimer(signal.ITIMER_REAL, _STOP_S)

    def _kill(self, *_: object) -> None:
        for pid, child in self._children.items():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                click.echo(f"{child.name:8} did not stop within {_STOP_S:.0f} s and was killed", err=True)


def _become_child(parent: int, output: int) -> None:
    """End with the parent, print into the pipe, be stopped by the parent only (not by the terminal's Ctrl-C)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
