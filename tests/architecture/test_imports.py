"""What a start loads, and what it does not: each library here costs a bookie milliseconds before its first append.

Asked in fresh interpreters. What is needed after all is imported where it is needed, or stands in a module that others
can do without; it is not hidden behind a name.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bookkeeper.codec import IMPLEMENTATION
from bookkeeper.launchers.machine_speed import stretch

NEVER = frozenset(["aiohttp", "cryptography", "fsspec", "grpc", "numpy", "pandas", "pyarrow", "pyspark", "rich"])
"""Libraries that no bookie needs, whatever it is told."""

SELDOM = frozenset(
    [
        "bookkeeper.auth.provider",
        "bookkeeper.bookie.connections.connection_security",
        "bookkeeper.bookie.health.health_pages",
        "bookkeeper.exposition",
        "crc32c",
        "http.server",
        "importlib.metadata",
        "prometheus_client",
        "tomllib",
    ]
)
"""What a bookie loads when somebody asks for it: encryption, metrics, a file with options."""

OF_THE_CODEC = frozenset() if IMPLEMENTATION == "native" else frozenset(["crc32c", "importlib.metadata"])
"""What the codec in Python needs for checksums; the compiled one has its own."""

OTHERS = frozenset(
    [
        "bookkeeper.client",
        "bookkeeper.ledger.ensemble",
        "bookkeeper.ledger.placement",
        "bookkeeper.ledger.read",
        "bookkeeper.ledger.recovery",
        "bookkeeper.ledger.write",
    ]
)
"""Rooms of the client."""


def loaded_by(script: str, *arguments: str) -> frozenset[str]:
    """The modules that are there when ``script`` has ended."""
    code = f"{script}\nimport sys\nprint('\\nLOADED', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60 * stretch(), check=False
    )
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.rpartition("LOADED")[2].split())


BOOKIE = """
import asyncio, os, signal, sys
from bookkeeper import real
from bookkeeper.bookie import process
from bookkeeper.bookie.config import config_from
from bookkeeper.meta import init_cluster

class Stopped:
    def write(self, text):
        if "serves at" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return len(text)
    def flush(self): ...

seams, uri = real.system_seams(), f"sqlite://{sys.argv[1]}/metadata.db"
real.run(init_cluster(uri, seams))
storage = {"journal_file_bytes": 65536}
said, sys.stdout = sys.stdout, Stopped()
config = config_from({"metadata_uri": uri, "directory": sys.argv[1], "storage": storage})
status = real.run(process.serve(config, seams))
sys.stdout = said
assert status == 0, status
"""


def test_a_bookie_that_has_served_and_stopped_has_not_loaded_what_it_did_not_need(tmp_path: Path) -> None:
    loaded = loaded_by(BOOKIE, str(tmp_path))
    assert {"bookkeeper.bookie.connections.server_connection", "bookkeeper.storage.engine", "sqlite3"} <= loaded, (
        "it has not served"
    )
    assert sorted(loaded & (NEVER | (SELDOM - OF_THE_CODEC) | OTHERS | {"kazoo", "puresasl"})) == []


def test_who_only_reads_a_configuration_loads_no_server() -> None:
    loaded = loaded_by("import bookkeeper.bookie.config, bookkeeper.client.config")
    rooms = {"bookkeeper.bookie.lifecycle", "bookkeeper.bookie.connections.server", "bookkeeper.client.bookkeeper"}
    other = {"bookkeeper.net.connection", "bookkeeper.storage.engine", "kazoo", "sqlite3", "tomllib"}
    assert sorted(loaded & (NEVER | rooms | other)) == []


def test_verbs_of_our_own_are_found_without_a_look_at_everything_that_is_installed() -> None:
    loaded = loaded_by(
        "import click; from bookkeeper.admin import cli; context = click.Context(cli.bk)\n"
        "for verb in ('bookie', 'ledger', 'bookies', 'init'): assert cli.bk.get_command(context, verb)"
    )
    assert sorted(loaded & (NEVER | {"importlib.metadata", "kazoo", "prometheus_client"})) == []


def test_the_front_door_of_applications_loads_no_server_and_no_library_of_one() -> None:
    loaded = loaded_by("import bookkeeper; bookkeeper.BookKeeper")
    assert "bookkeeper.client.bookkeeper" in loaded
    other = {"bookkeeper.bookie", "bookkeeper.storage", "bookkeeper.replication", "click", "kazoo", "prometheus_client"}
    assert sorted(loaded & (NEVER | other)) == []


def test_a_gateway_starts_without_the_metrics_library() -> None:
    loaded = loaded_by("import spark_wal.webhdfs.http.http_server, spark_wal.service")
    assert "aiohttp" in loaded
    assert sorted(loaded & {"bookkeeper.exposition", "cryptography", "prometheus_client", "pyspark"}) == []
