"""The cluster of a demo: a metadata store, bookies, autorecovery and gateways, each a process with a log of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until_async
from bookkeeper.launchers.zookeeper import free_port
from bookkeeper.leases.lease import LEASE_S
from bookkeeper.meta.service_uri import sqlite_uri
from examples.demo_kit.slow_machine import environment, session_s
from examples.processes import Child, Children, ending_with_this_process

ROOT: Final = Path(__file__).resolve().parents[2]
MIB: Final = 1024 * 1024
_SESSION_S: Final = 3.0
_NO_BYTES_LEFT: Final = 1 << 50
"""A reserve that no disk has."""

_BOOKIE: Final = """\
directory = "{directory}"
bookie_id = "{name}"
{location}metadata_session_s = {session}
space_check_s = 1
garbage_interval_s = 2
garbage_grace_s = 2

[storage]
journal_file_bytes = {mib}
journal_spares = 2
checkpoint_bytes = {checkpoint}
entry_log_bytes = {mib}
reserve_bytes = {reserve}
cached_bytes = {cached}
minor_compaction_interval_s = 4
major_compaction_interval_s = 8
"""


class DemoError(Exception):
    """The demo could not go on; the message says what and where to look."""


class DemoCluster:
    """Starts, kills, empties and configures the parts of the cluster."""

    def __init__(self, directory: Path, children: Children, metadata: str, small_disk_bytes: int = 0) -> None:
        """
        Args:
            metadata: ``sqlite`` or ``zk``.
            small_disk_bytes: the disk of the bookie that fills up, where a file system of its own can be had.
        """
        self._dir = directory
        self._children = children
        self._kind = metadata
        self._small_disk_bytes = small_disk_bytes
        self.uri = ""
        self.bookies: dict[str, Child] = {}
        self.racks: Mapping[str, str] = {}
        """Bookie -> where it stands, for instance ``/rack1``."""
        self.bookie_settings = ""
        """Lines for the end of each bookie's file of settings."""
        self.more_environment: dict[str, str] = {}
        """For each process that is started from now on."""
        self.metadata_process: Child | None = None
        """ZooKeeper; None with SQLite."""
        self.has_small_disk = False
        """Whether the bookie that fills up has a file system of its own."""

    def entry_logs(self, name: str) -> Path:
        """Where a bookie's entry logs are."""
        return self._dir / name / "ledgers"

    async def start_metadata(self) -> None:
        """Start the metadata store and make the cluster in it."""
        if self._kind == "sqlite":
            self.uri = sqlite_uri(f"{self._dir}/metadata.db")
        else:
            port = free_port()
            self.uri = f"zk+hierarchical://127.0.0.1:{port}/ledgers"
            arguments = ("--dir", str(self._dir / "zookeeper"), "--port", str(port))
            self.metadata_process = child = await self.start_bk("zookeeper", "zookeeper", *arguments)
            await self.until(lambda: listens(port), "ZooKeeper", child)
        status, output = await self.bk("init")
        if status:
            raise DemoError(f"the cluster could not be made: {output}")

    async def start_bookie(self, name: str, *, small: bool = False, read_only: bool = False) -> Child:
        """Start a bookie's process.

        Args:
            small: give it a small disk of its own, which disappears with the process.
        """
        directory = self._dir / name
        directory.mkdir(exist_ok=True)
        small = small and await asyncio.to_thread(_has_private_mounts, directory)
        self.has_small_disk = self.has_small_disk or small
        self._configure(name, reserve=4 * MIB if small else MIB)
        command = _bk("bookie", "--config", str(self._config(name)), *(["--read-only"] if read_only else []))
        if small:
            mount = f'mount -t tmpfs -o size={self._small_disk_bytes} none "$0" && exec "$@"'
            inner = ending_with_this_process(command)
            command = ["/usr/bin/unshare", "-Urm", "/bin/sh", "-c", mount, str(directory), *inner]
        self.bookies[name] = child = await self._start(name, command)
        return child

    def _config(self, name: str) -> Path:
        return self._dir / f"{name}.toml"

    def _configure(self, name: str, *, reserve: int) -> None:
        self._config(name).write_text(
            _BOOKIE.format(
                directory=self._dir / name,
                name=name,
                location=f'location = "{self.racks[name]}"\n' if name in self.racks else "",
                session=session_s(_SESSION_S),
                mib=MIB,
                checkpoint=2 * MIB,
                reserve=reserve,
                cached=16 * MIB,
            )
            + self.bookie_settings
        )

    async def kill(self, name: str) -> None:
        """Kill a bookie and delete its directory."""
        await self.bookies.pop(name).kill()
        await asyncio.to_thread(shutil.rmtree, self._dir / name)

    async def stop(self, name: str) -> None:
        """Stop a bookie cleanly."""
        await self.bookies.pop(name).end()

    async def pretend_full(self, name: str) -> None:
        """Start a bookie again that keeps back more space than its disk has: it behaves as on a full disk."""
        await self.stop(name)
        self._configure(name, reserve=_NO_BYTES_LEFT)
        self.bookies[name] = await self.start_bk(name, "bookie", "--config", str(self._config(name)))

    async def start_autorecovery(self, delay_s: int, check_every_s: float) -> None:
        """Start the process that audits and repairs: with a short delay, and checks that read every entry."""
        await self.start_bk(
            "autorecovery",
            *("autorecovery", "--name", "healer", "--lost-bookie-delay", str(round(delay_s * stretch()))),
            *("--grace", str(round(5 * stretch()))),
            *("--check-every", str(check_every_s / 3600), "--sample", "100"),
        )

    async def start_gateway(self, name: str, kind: str, port: int, *arguments: str) -> Child:
        """Start a gateway (``grpc`` or ``webhdfs``) at a port, with a lease that suits the machine."""
        places = ("--listen", f"127.0.0.1:{port}", "--lease-s", f"{LEASE_S * stretch():g}")
        return await self.start_bk(name, "gateway", kind, *places, *arguments)

    async def start_bk(self, name: str, *arguments: str) -> Child:
        """Start ``bk`` with these arguments, for long."""
        return await self._start(name, _bk(*arguments))

    async def start_program(self, name: str, module: str, *arguments: str, pipe_output: bool = True) -> Child:
        """Start a module of the examples, with its output piped."""
        return await self._start(name, [sys.executable, "-m", module, *arguments], pipe_output=pipe_output)

    async def _start(self, name: str, command: Sequence[str], *, pipe_output: bool = False) -> Child:
        its = {"BK_METADATA": self.uri, "PYTHONPATH": str(ROOT), **environment(), **self.more_environment}
        return await self._children.start(name, command, environment=its, directory=ROOT, pipe_output=pipe_output)

    async def bk(self, *arguments: str) -> tuple[int, str]:
        """Run ``bk``. Returns its exit status and what it printed, errors included."""
        child = await self._start("bk", _bk(*arguments), pipe_output=True)
        began = child.log.stat().st_size
        output = (await child.stdout.read()).decode(errors="replace")
        status = await child.wait()
        with child.log.open("rb") as log:
            log.seek(began)
            output += log.read().decode(errors="replace")
        return status, output.strip()

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, child: Child | None = None) -> None:
        """Wait until a part of the cluster is up. Without ``child`` all bookies are meant.

        Raises:
            DemoError: it has ended, or makes no progress.
        """
        try:
            if child is not None:
                await child.until(holds, what, self._dir / child.name)
                return
            started = dict(self.bookies)
            watched = ProgressSource(
                logs=[each.log for each in started.values()],
                files=[self._dir / name for name in started],
                pids=[each.pid for each in started.values()],
                runs=lambda: all(each.alive for each in started.values()),
            )
            await until_async(holds, what, watched)
        except StalledError as error:
            raise DemoError(str(error)) from error


def _bk(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bookkeeper.admin", *arguments]


async def listens(port: int) -> bool:
    """Whether somebody takes connections at a port of this machine."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _has_private_mounts(directory: Path) -> bool:
    """Whether a process may have a file system of its own here, also without being root."""
    if not os.path.exists("/usr/bin/unshare"):
        return False
    mount = ["/usr/bin/unshare", "-Urm", "/bin/sh", "-c", 'mount -t tmpfs -o size=1m none "$0"', str(directory)]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0
