"""The load generators, and what they need: fetched, compiled or built into the project's cache, once per version."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.apache.drivers import LoadDriver
from bookkeeper.errors import ConfigError
from bookkeeper.launchers.java import find_java
from examples.apache_servers import RELEASE, fetch_jars, jars, java_command
from examples.apache_servers.jars import cache_directory

KAFKA: Final = "4.4.0"
"""The version that ``pom.xml`` asks for."""
_HERE: Final = Path(__file__).parent


def cache() -> Path:
    """Where everything fetched or built is kept."""
    return cache_directory(os.environ).parent


def kafka_jars() -> str:
    """The class path of Kafka. Raises: ConfigError: it cannot be had here."""
    pom = (_HERE / "pom.xml").read_bytes()
    return fetch_jars(f"Kafka {KAFKA}", pom, cache() / f"kafka-{KAFKA}", f"kafka_2.13-{KAFKA}.jar", os.environ)


def nats_programs() -> tuple[Path, Path]:
    """NATS's server and the load generator on its client. Raises: ConfigError: they cannot be had here."""
    sources = [_HERE / "nats" / name for name in ("go.mod", "go.sum", "main.go")]
    target = cache() / f"nats-{digest(sources)}"
    if not target.is_dir():
        if shutil.which("go") is None:
            raise ConfigError("there is no go on the PATH to build it: install Go 1.26 or later")
        with _fresh(target) as fresh:
            for package in ("github.com/nats-io/nats-server/v2", "."):
                name = "nats-server" if package != "." else "load"
                command = ["go", "build", "-o", str(fresh.path / name), package]
                done = subprocess.run(command, cwd=_HERE / "nats", capture_output=True, text=True, check=False)
                if done.returncode:
                    raise ConfigError(f"go build failed: {done.stderr.strip()[-500:]}")
    return target / "nats-server", target / "load"


def digest(sources: Sequence[Path]) -> str:
    """Names what is built of these files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def kafka_driver(directory: Path, address: str) -> LoadDriver:
    """On Kafka's client. Raises: ConfigError."""
    classes = _classes("KafkaLog", kafka_jars())
    class_path = os.pathsep.join([kafka_jars(), classes])
    java = [find_java().executable, "-Xms1G", "-Xmx1G", *RELEASE, "-cp", class_path]
    return LoadDriver("Kafka's client", [*java, "Rival", "KafkaLog", address], directory / "load-kafka.log")


def distributedlog_driver(directory: Path, zookeeper: str) -> LoadDriver:
    """On DistributedLog's core; ``zookeeper`` is HOST:PORT/LEDGERS. Raises: ConfigError."""
    classes = _classes("DistributedLog", jars())
    command = java_command(
        directory,
        "Rival",
        "DistributedLog",
        zookeeper,
        heap_mb=1024,
        options=(*RELEASE, "-Xms1024m"),
        more_jars=(classes,),
        level="ERROR",
    )
    return LoadDriver("DistributedLog", command, directory / "load-distributedlog.log")


def nats_driver(directory: Path, address: str) -> LoadDriver:
    """On NATS's client. Raises: ConfigError."""
    return LoadDriver("NATS's client", [str(nats_programs()[1]), address], directory / "load-nats.log")


def our_driver(directory: Path, metadata: str, gateways: str) -> LoadDriver:
    """On the library, and through gateways."""
    command = [sys.executable, "-m", "benchmarks.rivals.load", metadata, gateways]
    return LoadDriver("our client", command, directory / "load-ours.log")


def _classes(log: str, class_path: str) -> str:
    sources = [_HERE / "Rival.java", _HERE / f"{log}.java"]
    target = cache() / f"rival-{log}-{digest(sources)}"
    if not target.is_dir():
        compiler = shutil.which("javac")
        if compiler is None:
            raise ConfigError("there is no javac on the PATH to compile its load generator: install a JDK")
        with _fresh(target) as fresh:
            subprocess.run([compiler, "-cp", class_path, "-d", str(fresh.path), *map(str, sources)], check=True)
    return str(target)


class _fresh:
    """A directory beside the target, which becomes the target if nothing went wrong."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self.path = target.with_name(f"{target.name}.{os.getpid()}")

    def __enter__(self) -> _fresh:
        self.path.mkdir(parents=True)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.path.rename(self._target)
        shutil.rmtree(self.path, ignore_errors=True)
