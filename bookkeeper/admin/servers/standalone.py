"""A cluster on one machine: bookies and gateway as children of one process, metadata in SQLite.

The parent has imported everything and started nothing (no loop, no thread, no connection) when it forks the children.
That saves each child the start of an interpreter. The children end with their parent, and the parent ends when it is
told to.

A child that ends by itself is reported and started again, after a pause that doubles each time (1 to 30 s). The others
continue meanwhile, because a cluster survives the loss of one bookie of three. The command checks beforehand for a port
that is taken and a directory that another process uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, NoReturn

import click

from bookkeeper import real
from bookkeeper.admin.extras import missing
from bookkeeper.admin.servers.free_port import require_free_port
from bookkeeper.admin.servers.standalone_plan import HOST, StandalonePlan
from bookkeeper.admin.shared.interruption import ONE_WISH_S
from bookkeeper.bookie.config import config_from
from bookkeeper.errors import (
    BookKeeperError,
    ClusterExistsError,
    DirectoryLockedError,
    MetadataUnavailableError,
    SessionExpiredError,
    in_words,
)
from bookkeeper.meta import init_cluster
from bookkeeper.seams import Lock

_PR_SET_PDEATHSIG: Final = 1
_SHARED: Final = ("bookkeeper.bookie.process", "bookkeeper.meta.stores.sqlite")
"""The modules that every bookie loads: loaded once, before the bookies are forked."""
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that tell the parent to stop."""
_STOP_S: Final = 15.0
"""How long children may take to stop before they are killed."""
_PAUSE_MAX_S: Final = 30.0
_LASTING_S: Final = 60.0
"""A child that has served for so many seconds before it ends is started again after the shortest pause."""
_OURS: Final = re.compile(r"metadata\.db(-\w+)?|b\d+|standalone\.lock")
"""The names in its directory."""
_GATEWAY: Final = "gateway"
_HEALER: Final = "healer"
"""What repairs under-replicated ledgers."""
_CONSOLE: Final = "console"
_BESIDE: Final = (_GATEWAY, _HEALER, _CONSOLE)
"""The children that are no bookies."""
_STORE_AWAY: Final = 75
"""The status of a child whose metadata store did not answer. Like one that was killed it was not refused: it is started
again, also if nothing has served yet."""
_LACKS: Final = 69
"""The status of a child that needs a package which is not installed. It is not started again."""

MIB: Final = 1024 * 1024
STORAGE: Final = {
    "journal_file_bytes": 8 * MIB,
    "journal_spares": 7,
    "checkpoint_bytes": 64 * MIB,
    "reserve_bytes": 8 * MIB,
}
"""The disk of a bookie that shares its machine: three empty ones take 72 MiB. It keeps as many journal files as fill up
between two checkpoints, so that under load they are recycled like large ones. The reserve is smaller than
``reserve_bytes_needed``: on a full disk such a bookie may need room before it takes fences or starts again."""


@dataclass(slots=True, eq=False)
class _Child:
    name: str
    work: Callable[[], int]
    pid: int = 0
    """The process id; 0 while the child does not run."""
    output: int = -1
    rest: bytes = b""
    serves: bool = False
    began: float = 0.0
    tries: int = 0
    """How many times in a row the child ended soon after its start."""
    due: float | None = None
    """When the child is started again; None if that is not planned."""
    settled: bool = False
    """Whether the child has served or ended, so that its state is known."""
    given_up: bool = False


class Standalone:
    """Runs a :class:`StandalonePlan` until SIGINT or SIGTERM."""

    def __init__(self, plan: StandalonePlan, *, pause_s: float = 1.0) -> None:
        self._plan = plan
        self._pause_s = pause_s
        self._supervisor = real.NotifySocket.of_this_process()
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._began = time.monotonic()
        self._ready = False
        self._asked = 0
        self._stop_by: float | None = None
        self._status = 0

    def run(self) -> int:
        """Start all, relay their output, restart those that end, stop all. Returns 0, or 1 if one was down.

        Raises:
            ConfigError: the gateway's port is taken. Nothing was done.
            DirectoryLockedError: another process uses the directory. Nothing was done.
        """
        lock = self._prepare()
        try:
            self._await_signals()
            if not self._make_cluster():
                return 1
            for module in _SHARED:
                import_module(module)
            for number in range(1, self._plan.bookies + 1):
                self._add(f"b{number}", lambda name=f"b{number}": self._bookie(name))  # type: ignore[misc]
            if self._plan.autorecovery and self._plan.bookies > 1:
                self._add(_HEALER, self._heal)
            if self._plan.webhdfs_port is not None:
                self._add(_GATEWAY, lambda port=self._plan.webhdfs_port: self._gateway(port))  # type: ignore[misc]
            if self._plan.console_port is not None:
                self._add(_CONSOLE, lambda port=self._plan.console_port: self._console(port))  # type: ignore[misc]
            self._watch()
            return self._status
        finally:
            lock.release()

    # -- before anything is started -----------------------------------------------------------------------

    def _prepare(self) -> Lock:
        directory, disk = str(self._plan.directory), real.system_seams().disk
        lock = self._lock() if disk.exists(directory) else None
        try:
            if self._plan.webhdfs_port is not None:
                no_gateway = "choose another port (--webhdfs-port PORT), or run no gateway (--webhdfs-port 0)"
                require_free_port(HOST, self._plan.webhdfs_port, "gateway", no_gateway)
            if self._plan.console_port is not None:
                require_free_port(HOST, self._plan.console_port, "console", "choose another port (--console PORT)")
            for name, port in self._plan.http_api_ports.items():
                require_free_port(HOST, port, f"HTTP API of {name}", "choose other ports (--http-api PORT)")
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        disk.make_directories(directory)
        lock = lock or self._lock()
        if all(_OURS.fullmatch(name) for name in os.listdir(directory)):
            real.make_private(directory)  # a directory of an earlier version; never one with other files
        return lock

    def _lock(self) -> Lock:
        """Lock the directory. The children hold the lock, too, so a process that gets it knows that they have ended."""
        try:
            return real.system_seams().disk.lock(str(self._plan.directory / "standalone.lock"))
        except BlockingIOError as error:
            raise DirectoryLockedError(
                f"another bk standalone runs on {self._plan.directory}: stop it, or choose another --dir"
            ) from error

    def _make_cluster(self) -> bool:
        """Make the cluster in a child, so that the parent opens no file of the store. Returns False if that failed."""
        child = _Child("init", self._init)
        while True:
            self._fork(child)
            os.set_blocking(child.output, True)
            while self._read(child):
                pass
            code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
            if self._asked or (code >= 0 and code != _STORE_AWAY):
                return code == 0
            time.sleep(self._pause_s)

    # -- what the children do -----------------------------------------------------------------------------

    def _init(self) -> int:
        with contextlib.suppress(ClusterExistsError):
            real.run(init_cluster(self._plan.metadata, real.system_seams()))
        return 0

    def _bookie(self, name: str) -> int:
        from bookkeeper.bookie.process import serve
        from bookkeeper.real.unix_socket import listen_unix

        directory = self._plan.directory / name
        options: dict[str, object] = {"metadata_uri": self._plan.metadata, "directory": str(directory)}
        if self._plan.tls:
            options["tls"] = self._plan.bookies_tls
        if name in self._plan.http_api_ports:
            options["http_api"] = self._plan.http_api_of(name)
        config = config_from({**options, "bookie_id": name, "storage": STORAGE})
        if config.needs_secrets or real.names_secrets(os.environ):
            real.no_core_dumps()
        return real.run(serve(config, real.system_seams(), listen_control=listen_unix))

    def _heal(self) -> int:
        from bookkeeper.admin.cluster.autorecovery import autorecovery

        os.environ.update(self._plan.clients_tls)
        arguments = ["run", "--metadata", self._plan.metadata, "--name", _HEALER]
        return autorecovery.main(arguments, prog_name="bk autorecovery", standalone_mode=False) or 0

    def _gateway(self, port: int) -> int:
        """Run the gateway, found by its entry point, because this package does not know the packages above it."""
        found = [entry for entry in entry_points(group=self._plan.command_group) if entry.name == _GATEWAY]
        if not found:
            raise ModuleNotFoundError("No module named 'spark_wal'", name="spark_wal")
        command = found[0].load()
        os.environ.update(self._plan.clients_tls)
        arguments = ["webhdfs", "--metadata", self._plan.metadata, "--listen", f"{HOST}:{port}"]
        return command.main(arguments, prog_name="bk gateway", standalone_mode=False) or 0

    def _console(self, port: int) -> int:
        from bookkeeper.admin.servers.console import console

        os.environ.update(self._plan.clients_tls)
        arguments = ["--metadata", self._plan.metadata, "--listen", f"{HOST}:{port}"]
        return console.main(arguments, prog_name="bk console", standalone_mode=False) or 0

    def _add(self, name: str, work: Callable[[], int]) -> None:
        child = _Child(name, work)
        self._children.append(child)
        self._start(child)

    def _start(self, child: _Child) -> None:
        self._fork(child)
        self._selector.register(child.output, selectors.EVENT_READ, child)

    def _fork(self, child: _Child) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # until the child no longer has the parent's handlers
        try:
            pid = os.fork()
            if not pid:
                self._run_child(child, parent, writing)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writing)
        os.set_blocking(reading, False)
        child.pid, child.output, child.rest = pid, reading, b""
        child.began, child.serves, child.due = time.monotonic(), False, None

    def _run_child(self, child: _Child, parent: int, output: int) -> NoReturn:
        """Run the child's whole life."""
        status = 1
        try:
            _become_child(parent, output)
            for other in self._children:
                if other.pid and other is not child:
                    os.close(other.output)
            status = child.work()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        except ModuleNotFoundError as error:
            click.echo(f"bk: not started: this {missing(error)}")
            status = _LACKS
        except click.ClickException as error:
            click.echo(f"bk: {error.format_message()}")
        except (BookKeeperError, OSError) as error:
            click.echo(f"bk: {in_words(error)}")
            status = _STORE_AWAY if isinstance(error, MetadataUnavailableError | SessionExpiredError) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    # -- what the parent does -----------------------------------------------------------------------------

    def _await_signals(self) -> None:
        """Handle signals. A signal is only noted, and wakes the loop that waits for output."""
        woken, wakes = os.pipe()
        for end in (woken, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self._selector.register(woken, selectors.EVENT_READ, None)
        for number in _STOPS:
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self._asked += 1

    def _watch(self) -> None:
        """Relay output, collect and restart children that ended, until all have ended because they were told to."""
        while True:
            for key, _ in self._selector.select(self._patience()):
                if key.data is None:
                    os.read(key.fd, 4096)
                elif not self._read(key.data):
                    self._reap(key.data)
            for child in self._children:
                if child.due is not None and child.due <= time.monotonic():
                    self._start(child)
            self._report_ready()
            if self._asked:
                self._stop()
                if not any(child.pid for child in self._children):
                    return

    def _patience(self) -> float | None:
        times = [child.due for child in self._children if child.due is not None]
        times += [self._stop_by] if self._stop_by is not None else []
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _read(self, child: _Child) -> bool:
        """Relay whole lines. Returns False if the output has ended, and so the child."""
        try:
            data = os.read(child.output, 65536)
        except BlockingIOError:
            return True
        *lines, child.rest = (child.rest + data).split(b"\n")
        if not data and child.rest:
            lines, child.rest = [child.rest], b""
        for line in lines:
            text = line.decode(errors="replace")
            self._print(f"{child.name:8} {text}")
            if " serve" in text:
                child.serves = child.settled = True
        return bool(data)

    def _reap(self, child: _Child) -> None:
        """Collect a child that has closed its output, because it has ended or is about to."""
        self._selector.unregister(child.output)
        os.close(child.output)
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        served_s = time.monotonic() - child.began if child.serves else 0.0
        child.pid, child.serves = 0, False
        child.settled = child.settled or (code >= 0 and code != _STORE_AWAY)
        if self._asked:
            if code not in (0, -signal.SIGTERM):  # a child that is stopped before it serves just ends
                self._status = 1
                self._print(f"{child.name:8} has ended {_how(code)}", err=True)
        elif code == _LACKS:
            self._give_up(child)
        else:
            child.tries = 0 if served_s >= _LASTING_S else child.tries
            pause_s = min(_PAUSE_MAX_S, self._pause_s * 2**child.tries)
            child.tries += 1
            child.due = time.monotonic() + pause_s
            if self._none_has_served():
                return
            self._print(f"{child.name:8} has ended {_how(code)}; it is started again in {pause_s:g} s", err=True)

    def _give_up(self, child: _Child) -> None:
        child.given_up = True
        if self._plan.gateway_wanted or child.name != _GATEWAY:
            self._status = 1
            self._asked += 1

    def _none_has_served(self) -> bool:
        """Whether no bookie was ever up, and all have ended."""
        bookies = [child for child in self._children if child.name not in _BESIDE]
        if self._ready or any(child.serves or not child.settled for child in bookies):
            return False
        self._status = 1
        self._asked += 1
        self._print("bk: no bookie could be started; the reasons are above", err=True)
        return True

    def _report_ready(self) -> None:
        if self._ready or self._asked or not all(child.settled for child in self._children):
            return
        if not any(child.serves for child in self._children if child.name not in _BESIDE):
            return
        self._ready = True
        without = ", ".join(child.name for child in self._children if not child.serves)
        text = (
            f"ready after {time.monotonic() - self._began:.1f} s{f' without {without}' if without else ''}, "
            f"everything is in {self._plan.directory}"
        )
        self._print(f"\n{text}")
        self._supervisor.ready(text)
        for name, value in {"BK_METADATA": self._plan.metadata, **self._plan.clients_tls}.items():
            self._print(f"  export {name}={value}")
        if any(child.name == _GATEWAY and child.serves for child in self._children):
            self._print(f"  checkpointLocation=webhdfs://{HOST}:{self._plan.webhdfs_port}/NAME")
        if any(child.name == _CONSOLE and child.serves for child in self._children):
            self._print(f"  console: http://{HOST}:{self._plan.console_port}/")
        for child in self._children:
            if child.serves and (port := self._plan.http_api_ports.get(child.name)):
                self._print(f"  HTTP API of {child.name}: http://{HOST}:{port}/api/v1/")

    def _print(self, text: str, *, err: bool = False) -> None:
        """Print a line. If the reader has closed our output, end."""
        stream = sys.stderr if err else sys.stdout
        try:
            click.echo(text, file=stream)
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            self._asked += 1

    def _stop(self) -> None:
        """Ask the children to stop. Kill them at the second signal, or after a while."""
        running = [child for child in self._children if child.pid]
        again = self._asked > 1
        self._asked = 1
        if self._stop_by is None:
            self._stop_by = time.monotonic() + _STOP_S
            self._supervisor.stopping()
            for child in self._children:
                if child.tries and not child.serves:
                    self._status = 1
                child.due = None
            for child in running:
                os.kill(child.pid, signal.SIGTERM)
        elif time.monotonic() >= self._stop_by - (_STOP_S - ONE_WISH_S if again else 0.0):
            for child in running:
                os.kill(child.pid, signal.SIGKILL)
                self._print(f"{child.name:8} did not stop in time and was killed", err=True)
            self._stop_by = time.monotonic() + _STOP_S


def _how(code: int) -> str:
    if code >= 0:
        return f"with status {code}"
    try:
        return f"by the signal {signal.Signals(-code).name}"
    except ValueError:
        return f"by the signal {-code}"


def _become_child(parent: int, output: int) -> None:
    """Prepare the child: it ends with the parent, prints into the pipe, and Ctrl-C does not reach it."""
    signal.set_wakeup_fd(-1)
    for number in _STOPS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
