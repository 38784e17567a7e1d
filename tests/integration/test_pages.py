"""Every Python block of every page runs as it is printed: only places (addresses, directories, files) are others.

README's are in ``test_readme``. A page may say of a block that it is part of something: none does at present.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.launchers.machine_speed import stretch
from examples.certificates import Authority
from segments import Record, sync
from tests.integration.processes import Process, bookies, free_port
from tests.integration.test_readme import ROOT, run_python

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES: Final = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted((ROOT / "docs").rglob("*.md"))}
RUN: Final = [
    ("docs/journals.md", "save_snapshot"),
    ("docs/journals.md", 'EditLog.open("set:"'),
    ("docs/journals.md", "JournalBackendContract"),
    ("docs/namenode.md", "EditsReader"),
    ("docs/security.md", "EncryptionConfig"),
    ("docs/spark-data.md", "counted"),
    ("docs/spark-data.md", "batch_writer"),
    ("docs/spark.md", 'client_id="spark-etl"'),
    ("docs/spark.md", "gateways ="),
    ("docs/streams.md", "producer.append"),
    ("docs/testing.md", "faults.stopped"),
    ("docs/testing.md", "bookkeeper_seed"),
]
"""The page of each block, and what only this block has."""


def block(page: str, text: str, places: Mapping[str, str]) -> str:
    """The block with other places. Each of them must be in it."""
    assert (page, text) in RUN
    (code,) = (found for found in BLOCK.findall(PAGES[page]) if text in found)
    for printed, here in places.items():
        assert printed in code, f"{page}: the block has no {printed} any more"
        code = code.replace(printed, here)
    return str(code)


def test_every_block_is_run_here() -> None:
    """The cause: README's were run, the others were not, and the example of a pair of gateways failed as printed."""
    found = [(page, code) for page, text in PAGES.items() for code in BLOCK.findall(text)]
    missing = [f"{page}: {code}" for page, code in found if not any(page == p and text in code for p, text in RUN)]
    assert not missing, "these blocks are run by no test"
    assert len(found) == len(RUN)
    fenced = [
        page for page, text in PAGES.items() for _ in re.findall(r"^ *(?:```|~~~) *(?:py|python\d?)\b", text, re.M)
    ]
    assert len(fenced) == len(found), "a block that is indented or named otherwise would be overlooked"


def test_an_edit_log_goes_on_where_it_was(tmp_path: Path) -> None:
    code = block("docs/journals.md", "save_snapshot", {"/tmp/edits": f"{tmp_path}/edits"})
    assert run_python(code, tmp_path) == "1 b'an edit; '\n"
    assert run_python(code, tmp_path) == "2 b'an edit; an edit; '\n"


def test_an_edit_is_in_both_members_of_a_set(tmp_path: Path) -> None:
    places = {
        "bk+zk://zk1:2181/ledgers?name=edits": f"bk+embedded://{tmp_path}/bk?bookies=3&name=edits",
        "/var/edits": f"{tmp_path}/edits",
    }
    assert run_python(block("docs/journals.md", 'EditLog.open("set:"', places), tmp_path) == "1\n"


def test_the_contract_runs_for_a_backend_of_ones_own(tmp_path: Path) -> None:
    code = block("docs/journals.md", "JournalBackendContract", {'f"mine:': 'f"file://'})
    _, *files = re.split(r"^# (\w+\.py)\n", code, flags=re.MULTILINE)
    for name, text in zip(files[::2], files[1::2], strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "read", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240 * stretch(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 5


def test_hdfs_edits_are_read(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/vectors/hdfs-edits/edits_1-534.bin", tmp_path / "edits")
    code = block("docs/namenode.md", "EditsReader", {'open("edits"': f'open("{tmp_path}/edits"'})
    said = run_python(code, tmp_path).splitlines()
    assert said[0].startswith("1 ") and said[-1].startswith("534 ")


def test_a_stream_has_each_record_once(tmp_path: Path) -> None:
    code = block("docs/streams.md", "producer.append", {"/tmp/streams": f"{tmp_path}/streams"})
    said = [run_python(code, tmp_path) for _ in range(2)]
    assert said[0] == said[1] and said[0].endswith("2 b'order 2'\n") and len(said[0].splitlines()) == 3


def test_what_is_encrypted_stands_on_no_disk(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"2026-07:{base64.b64encode(bytes(range(32))).decode()}\n")
    keys.chmod(0o600)
    places = {
        "zk://host:2181/ledgers": f"embedded://{tmp_path}/bk?bookies=3",
        "/etc/bk/keys": str(keys),
        "...": "hidden",
    }
    code = block("docs/security.md", "EncryptionConfig", places)
    plain = code.replace("bk.create_ledger()", "bk.create_ledger(encrypted=False)")

    def is_seen() -> bool:
        return any(b"hidden" in path.read_bytes() for path in (tmp_path / "bk").rglob("*") if path.is_file())

    assert run_python(code, tmp_path) == "" and not is_seen()
    assert run_python(plain, tmp_path) == "" and is_seen(), "so it was looked for in the right place"


def test_a_test_of_ones_own_has_a_cluster(tmp_path: Path) -> None:
    blocks = [block("docs/testing.md", text, {}) for text in ("faults.stopped", "bookkeeper_seed")]
    (tmp_path / "test_own.py").write_text("\n\n".join(["import pytest", *blocks]))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "bookkeeper.testing.plugin"]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, timeout=240 * stretch(), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "21 passed" in done.stdout


# -- Spark -------------------------------------------------------------------------------------------------


class Protected:
    """Gateways with TLS and tokens, and what Spark needs for them, in a directory."""

    def __init__(self, home: Path, uri: str) -> None:
        self.home = home
        self._uri = uri
        authority = Authority(home / "ca")
        self._server = authority.server("gateway")
        self._tokens, token = home / "tokens", new_token()
        for path, text in (
            (self._tokens, signing_key_line("k1") + token_line("spark-etl", token, ["/etl"])),
            (home / "token", token.reveal()),
        ):
            path.touch(0o600)
            path.write_text(text)
        (home / "lines").mkdir()
        self.places = {'"ca.pem"': f'"{authority.ca}"', '"token"': f'"{home}/token"', "/data/lines": f"{home}/lines"}

    def gateway(self, name: str, port: int) -> Process:
        tls = ["--tls-cert", self._server.cert, "--tls-key", self._server.key, "--token-file", str(self._tokens)]
        words = ["gateway", "webhdfs", "--metadata", self._uri, "--listen", f"127.0.0.1:{port}", *tls]
        return Process(name, self.home, *words).start()

    def query(self, code: str, line: str) -> list[str]:
        """Run a page's program once more, with one line more to find. What it has printed of lines."""
        (self.home / "lines" / line).write_text(f"{line}\n")
        from bookkeeper.launchers.java import find_java

        environment = {"JAVA_HOME": find_java().home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short programs
        return re.findall(r"line-\d", run_python(code, self.home, **environment))


@contextmanager
def ended(*processes: Process) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.kill()


@pytest.mark.spark
def test_spark_keeps_its_checkpoint_on_a_gateway_with_oauth2(tmp_path: Path) -> None:
    at = Protected(tmp_path, f"file://{tmp_path}/namespace")
    port = free_port()
    code = block("docs/spark.md", 'client_id="spark-etl"', {"gw.example.org:9871": f"127.0.0.1:{port}", **at.places})
    gateway = at.gateway("gateway", port)
    with ended(gateway):
        gateway.until_said("serves")
        assert at.query(code, "line-1") == ["line-1"]


@pytest.mark.spark
@pytest.mark.rule("S12")
def test_spark_goes_on_at_the_second_of_two_protected_gateways(tmp_path: Path) -> None:
    with bookies(tmp_path) as cluster:
        at = Protected(tmp_path, cluster.uri)
        ports = [free_port(), free_port()]
        first = at.gateway("first", ports[0])
        with ended(first):
            first.until_said("serves namespace")
            second = at.gateway("second", ports[1])
            with ended(second):
                second.until_said("stands by")
                places = {f"gw{n}.example.org:9871": f"127.0.0.1:{port}" for n, port in enumerate(ports, 1)}
                code = block("docs/spark.md", "gateways =", {**places, **at.places})
                assert at.query(code, "line-1") == ["line-1"]
                first.kill()
                assert at.query(code, "line-2") == ["line-2"], "what was counted before is remembered there"


@pytest.mark.spark
def test_spark_reads_a_stream_as_data(tmp_path: Path) -> None:
    from bookkeeper.launchers.java import find_java

    with bookies(tmp_path) as cluster:
        with sync.connect(cluster.uri) as namespace, namespace.create("orders").writer() as writer:
            writer.append_batch([Record(b"order", key=b"%d" % (number % 3)) for number in range(20)])
        places = {"sqlite:////tmp/bk/metadata.db": cluster.uri, "/tmp/checkpoint": f"{tmp_path}/checkpoint"}
        environment = {"JAVA_HOME": find_java().home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        said = run_python(block("docs/spark-data.md", "counted", places), tmp_path, **environment)
        assert said.splitlines()[-2:] == ["records 20", "counted 20"]
        places["/tmp/checkpoint"] = f"{tmp_path}/checkpoints"
        said = run_python(block("docs/spark-data.md", "batch_writer", places), tmp_path, **environment)
    assert [line for line in said.splitlines() if line.startswith(("copies", "totals"))] == ["copies 20", "totals 3"]
