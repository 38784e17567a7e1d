"""What a disk, a network or encryption adds: the same for bookies of either kind.

slower syncs    a library that is preloaded into the bookies (``slow_sync.c``)
a longer way    a forwarder before each bookie (``far_away.c``); its port is what the bookie's entry in ZooKeeper says
encryption      a certificate for all bookies, and who vouches for it
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bookkeeper.errors import ConfigError
from bookkeeper.launchers.zookeeper import tied_to_parent

_HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Surroundings:
    """In what bookies run. ``key`` names it in results and options, ``title`` in the report."""

    key: str
    title: str
    environment: dict[str, str] = field(default_factory=dict)
    delay_us: int = 0
    """Of each direction of each connection to a bookie."""
    encrypted: bool = False


PLAIN: Final = Surroundings("plain", "as it is")


def slow_sync(cache: Path, microseconds: int = 1000) -> Surroundings:
    """Every sync takes so much longer. Raises: ConfigError: no C compiler."""
    library = compiled(cache, "slow_sync.c", ".so", "-shared", "-fPIC")
    environment = {"LD_PRELOAD": str(library), "SLOW_SYNC_US": str(microseconds)}
    return Surroundings("slow-sync", f"{microseconds / 1000:g} ms added to every sync", environment)


def far(microseconds: int = 250) -> Surroundings:
    """Each direction takes so much longer."""
    return Surroundings("far", f"{microseconds / 500:g} ms of network round trip", delay_us=microseconds)


def encrypted() -> Surroundings:
    """TLS between clients and bookies."""
    return Surroundings("tls", "TLS on", encrypted=True)


def compiled(cache: Path, source: str, suffix: str, *options: str) -> Path:
    """A program of this directory, compiled into ``cache`` when it is new.

    Raises:
        ConfigError: there is no C compiler.
    """
    path = _HERE / source
    target = cache / f"{path.stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}{suffix}"
    if target.exists():
        return target
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise ConfigError(f"no C compiler on PATH: {source} has to be compiled")
    cache.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    subprocess.run([compiler, "-O2", *options, "-o", str(fresh), str(path), "-ldl"], check=True)
    fresh.rename(target)
    return target


class Forwarder:
    """Makes ports of 127.0.0.1 seem far away, until :meth:`stop`."""

    def __init__(self, cache: Path, delay_us: int, ports: Sequence[tuple[int, int]]) -> None:
        """``ports``: pairs of (where it listens, where that leads)."""
        program = compiled(cache, "far_away.c", "")
        words = [str(program), str(delay_us), *(f"{listen}:{target}" for listen, target in ports)]
        self._process = subprocess.Popen(tied_to_parent(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self.stop()
            raise OSError(f"the forwarder could not listen on {ports}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End it. Idempotent."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
