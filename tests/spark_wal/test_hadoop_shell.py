"""``hdfs dfs`` against the gateway: Hadoop's shell is among PySpark's jars."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import spark_wal
from bookkeeper.launchers.machine_speed import stretch

java = pytest.importorskip("bookkeeper.launchers.java")
pyspark = importlib.util.find_spec("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.skipif(pyspark is None, reason="no PySpark")]

Shell = Callable[..., str]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    assert pyspark is not None
    assert pyspark.origin is not None
    jars = Path(pyspark.origin).parent / "jars"
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    with spark_wal.checkpoint_service(f"mem:{uuid4()}", listen="127.0.0.1:0") as wal:

        def run(*arguments: str) -> str:
            located = [wal.location(a[1:]) if a.startswith("@") else a for a in arguments]
            flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{tmp_path}:{jars}/*"]
            command = [java.find_java().executable, *flags, "org.apache.hadoop.fs.FsShell", *located]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 * stretch(), check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield run


def test_the_shell_writes_appends_reads_moves_and_lists(shell: Shell, tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.write_text("hello\n")
    shell("-put", str(local), "@/f")
    shell("-appendToFile", str(local), "@/f")
    assert shell("-cat", "@/f") == "hello\nhello\n"
    shell("-mv", "@/f", "@/g")
    (listed,) = shell("-ls", "-R", "@/").splitlines()
    assert listed.startswith("-rw-r--r--")
    assert listed.endswith("/g")
