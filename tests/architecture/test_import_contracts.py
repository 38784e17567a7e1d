"""Every import contract bites: an import that it forbids is planted in a copy of the code, and the linter tells of it.

All plants go into one copy. Of each contract it is asked whether it names its own plant, whatever others say of it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.launchers.machine_speed import stretch

ROOT = Path(__file__).resolve().parents[2]

CONFIGURATION: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: list[str] = [contract["name"] for contract in CONFIGURATION["contracts"]]

PLANTS: dict[str, tuple[str, str]] = {
    "The floors of bookkeeper: imports go down": ("bookkeeper.ids", "bookkeeper.client.entry"),
    "The floors of the client: imports go down": ("bookkeeper.client.tasks", "bookkeeper.client.services"),
    "The floors of the protocol: imports go down": (
        "bookkeeper.ledger.ensemble.acks",
        "bookkeeper.ledger.write.writer",
    ),
    "The floors of a bookie's disk: imports go down": (
        "bookkeeper.storage.journal.group_commit",
        "bookkeeper.storage.shared_log.shared_layout",
    ),
    "The floors of metadata: imports go down": ("bookkeeper.meta.records.layout", "bookkeeper.meta.stores.tree"),
    "The floors of the command bk: imports go down": (
        "bookkeeper.admin.ledger.explain",
        "bookkeeper.admin.bookies.operations",
    ),
    "The floors of replication: imports go down": (
        "bookkeeper.replication.copying.throttle",
        "bookkeeper.replication.repairs.tidy",
    ),
    "The floors of testing: imports go down": ("bookkeeper.testing.world.disk", "bookkeeper.testing.cluster"),
    "The protocol is pure: no I/O, no clock, no dice": ("bookkeeper.ledger.write.writer", "pathlib"),
    "What decides for servers, clients and disks is pure: no I/O, no clock, no dice": (
        "bookkeeper.storage.journal.write_schedule",
        "time",
    ),
    "A bookie's disk knows no network": ("bookkeeper.storage.base.results", "bookkeeper.wire.status"),
    "Only the bindings touch the system: time, chance, files, sockets, threads": ("bookkeeper.bookie.config", "time"),
    "The packages, top to bottom": ("bookkeeper.errors", "journal_manager.txid"),
    "Packages and examples know no tests and no benchmarks": ("bookkeeper.testing.cluster", "tests"),
    "The ZooKeeper client stays in its three files": ("bookkeeper.meta.stores.tree", "kazoo"),
    "PySpark is imported by the data source alone; elsewhere it is spoken to": ("spark_wal.spark_access", "pyspark"),
    "PySpark finds the data source above everything of ours": ("spark_wal.gateway_location", "pyspark_bookkeeper"),
    "The modules of Spark's data source: imports go down": (
        "spark_wal.data_source.offsets",
        "spark_wal.data_source.tables",
    ),
    "What a user of Spark's data source asks for is decided purely: no I/O, no clock, no dice, no Spark": (
        "spark_wal.data_source.options",
        "time",
    ),
    "The HTTP library stays in its two files": ("spark_wal.webhdfs.http.operations", "aiohttp"),
    "Arrow stays in five files: other stores of files, records as columns, and Spark's columns, values and rows": (
        "spark_wal.checkpoint_copy.copier",
        "pyarrow",
    ),
    "The metrics library stays in its file": ("bookkeeper.metrics", "prometheus_client"),
    "The library for options stays in its file": ("bookkeeper.client.config", "cattrs"),
    "The floors of the console: imports go down": ("bookkeeper.console.panels", "bookkeeper.console.cells"),
    "The library for templates stays in its file": ("bookkeeper.console.cells", "jinja2"),
    "The floors of journal_manager: imports go down": ("journal_manager.edits.ops", "journal_manager.journals.backend"),
    "The modules of journal_manager's rooms: imports go down": (
        "journal_manager.txid",
        "journal_manager.edits.ops",
    ),
    "The floors of HDFS's edits: imports go down": ("journal_manager.hdfs.primitives", "journal_manager.hdfs.oev"),
    "A journal framework that does not know its backends": (
        "journal_manager.journals.registry",
        "journal_manager.backends.memory",
    ),
    "A journal's rules are pure: no I/O, no clock, no dice, no cluster": ("journal_manager.journals.chain", "time"),
    "Journal backends do not know each other": ("journal_manager.backends.file", "journal_manager.backends.memory"),
    "The files of a journal are for the file backend": (
        "journal_manager.backends.bookkeeper.snapshots",
        "journal_manager.backends.file_snapshots",
    ),
    "The floors of volumes: imports go down": (
        "bookkeeper.volumes.routing.routes",
        "bookkeeper.volumes.members.members",
    ),
    "The floors of a bookie: imports go down": (
        "bookkeeper.bookie.identity.checked_note",
        "bookkeeper.bookie.start.bookie_start",
    ),
    "The modules of connections: imports go down": ("bookkeeper.net.backoff", "bookkeeper.net.in_process"),
    "The modules of autorecovery: imports go down": (
        "bookkeeper.autorecovery.report",
        "bookkeeper.autorecovery.lost_bookies",
    ),
    "The floors of segments: imports go down": ("segments.errors", "segments.config"),
    "The modules of a stream's chain: imports go down": ("segments.chain.stream_segment", "segments.chain.chain_codec"),
    "The modules of a stream's entries: imports go down": ("segments.entries.layout", "segments.entries.footer"),
    "The rooms that write a stream: imports go down": (
        "segments.write.segment.rolling",
        "segments.write.output.entry_output",
    ),
    "The modules that gather appends: imports go down": (
        "segments.write.appends.grouping",
        "segments.write.appends.append_machine",
    ),
    "The modules of what a writer knows of its stream: imports go down": (
        "segments.write.state.stream_owner",
        "segments.write.state.snapshot",
    ),
    "The modules of a writer's ledgers: imports go down": (
        "segments.write.ledgers.open_segment",
        "segments.write.ledgers.ledger_allocator",
    ),
    "The modules of a writer's segments: imports go down": (
        "segments.write.segment.rolling",
        "segments.write.segment.segment_machine",
    ),
    "The modules that send entries: imports go down": (
        "segments.write.output.flight",
        "segments.write.output.append_queue",
    ),
    "The rooms that read a stream: imports go down": (
        "segments.read.source.segment_feed",
        "segments.read.fetch.fetcher",
    ),
    "The modules that fetch records: imports go down": (
        "segments.read.fetch.reader_state",
        "segments.read.fetch.fetch_machine",
    ),
    "The modules of what was fetched: imports go down": (
        "segments.read.batches.record_batch",
        "segments.read.batches.ready_queue",
    ),
    "The modules that find places: imports go down": (
        "segments.read.positions.seek_target",
        "segments.read.positions.splits",
    ),
    "The modules of a stream's source: imports go down": (
        "segments.read.source.segment_entries",
        "segments.read.source.stream_source",
    ),
    "The modules of cursors: imports go down": ("segments.cursors.cursor_state", "segments.cursors.cursor_format"),
    "The modules of the gateway's protocol: imports go down": (
        "segments.protocol.credits",
        "segments.protocol.messages",
    ),
    "The modules of the directory of streams: imports go down": (
        "segments.directory.settings",
        "segments.directory.directory",
    ),
    "The modules of publishing: imports go down": ("segments.publish.batch_key", "segments.publish.publisher"),
    "The modules of retention: imports go down": ("segments.retention.holds", "segments.retention.truncation"),
    "The modules of checks: imports go down": ("segments.checks.findings", "segments.checks.checker"),
    "The modules of transfer: imports go down": ("segments.transfer.bundle", "segments.transfer.transfer"),
    "The modules of the client of gateways: imports go down": (
        "segments.remote.append_queue",
        "segments.remote.append_pipe",
    ),
    "The rooms of the gateway of streams: imports go down": (
        "segments.gateway.ownership.ownership_state",
        "segments.gateway.guard.call_guard",
    ),
    "The calls of the gateway of streams: imports go down": (
        "segments.gateway.calls.served_streams",
        "segments.gateway.calls.append_calls",
    ),
    "What guards the calls of the gateway of streams: imports go down": (
        "segments.gateway.guard.request_rights",
        "segments.gateway.guard.grpc_call",
    ),
    "The modules of bk stream: imports go down": ("segments.commands.shared", "segments.commands.records"),
    "A stream's values, records and rules are pure: no I/O, no clock, no dice": ("segments.producers", "time"),
    "The libraries that compress stay in one file": ("segments.entries.entry", "lz4"),
    "The library for gRPC stays in the gateway of streams and its client": ("segments.protocol.messages", "grpc"),
    "The floors of spark_wal: imports go down": ("spark_wal.hadoop_tokens", "spark_wal.spark_access"),
    "The floors of the WebHDFS gateway: imports go down": (
        "spark_wal.webhdfs.contents.uploads",
        "spark_wal.webhdfs.ownership.events",
    ),
    "The modules of the gateway's HTTP: imports go down": (
        "spark_wal.webhdfs.http.two_steps",
        "spark_wal.webhdfs.http.operations",
    ),
    "The floors of the gateway's owner: imports go down": (
        "spark_wal.webhdfs.ownership.backing",
        "spark_wal.webhdfs.ownership.cluster_backing",
    ),
    "The gateway's tree is pure: no I/O, no clock, no dice, no library of HTTP": (
        "spark_wal.webhdfs.files.namespace",
        "asyncio",
    ),
    "The modules that read checkpoints: imports go down": (
        "spark_wal.checkpoints.layout",
        "spark_wal.checkpoints.fsck",
    ),
    "Whether a checkpoint is whole is decided purely: no I/O, no clock, no dice, no store": (
        "spark_wal.checkpoints.logs",
        "time",
    ),
    "Stores of checkpoints do not know each other": (
        "spark_wal.checkpoint_copy.local_store",
        "spark_wal.checkpoint_copy.gateway_store",
    ),
    "The cryptography library stays in four files: entries, revocations, Java's key stores, certificates of tests": (
        "bookkeeper.auth.certificate",
        "cryptography",
    ),
}
"""Contract -> the module that gets an import, and what it imports."""

RUN = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says of the copy with all plants, in lines of any length."""
    copy = tmp_path_factory.mktemp("planted")
    for package in CONFIGURATION["root_packages"]:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyi"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for module, imported in PLANTS.values():
        place = copy / f"{module.replace('.', '/')}.py"
        place.write_text(f"{place.read_text()}\nimport {imported}\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN, "--no-cache", "--config", "pyproject.toml"],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), "COLUMNS": "500"},
        capture_output=True,
        text=True,
        timeout=110 * stretch(),
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout.partition("\nBroken contracts\n")[2]


def test_every_contract_has_a_plant() -> None:
    assert sorted(PLANTS) == sorted(CONTRACTS)


def test_every_module_of_a_room_whose_modules_have_floors_has_one() -> None:
    """A contract is exhaustive for rooms only: where it names their modules, no new one may be forgotten."""
    divided = 0
    for contract in CONFIGURATION["contracts"]:
        floors = {each.strip() for layer in contract.get("layers", ()) for each in layer.replace("|", ":").split(":")}
        named = {each for each in floors if "." in each}
        for container in contract.get("containers", ()) if named else ():
            divided += 1
            home = ROOT / container.replace(".", "/")
            rooms = {each.partition(".")[0] for each in named}
            there = {f"{room}.{path.stem}" for room in rooms for path in (home / room).glob("*.py")}
            assert {each for each in there if not each.endswith(".__init__")} == named, contract["name"]
    assert divided > 0


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_contract_tells_of_the_import_that_it_forbids(contract: str, report: str) -> None:
    module, imported = PLANTS[contract]
    told = re.search(rf"^{re.escape(contract)}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", report, re.DOTALL | re.MULTILINE)
    assert told is not None, f"not broken: {contract}"
    assert f"{module} -> {imported}" in told[1]
