"""README's blocks run as they are pasted: only directories and ports are others, so that tests can run side by side."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper.launchers.machine_speed import stretch
from tests.integration.processes import Process, end_with_parent, free_port, until

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def block(language: str, text: str) -> str:
    """The one fenced block of a language that contains ``text``."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    found = [code for code in blocks if text in code]
    assert len(found) == 1, f"README has {len(found)} blocks of {language} with {text!r}"
    return str(found[0])


class Standalone:
    """What README starts with ``bk standalone``, somewhere else. Its commands are the first thing that is run there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        (line,) = block("sh", "bk standalone").splitlines()
        bk, *words = self.placed(line).split()
        assert bk == "bk"
        self.process = Process("standalone", home, *words, "--webhdfs-port", str(self.port)).start()
        self.process.until_said(r"ready after")
        assert "reserve_bytes" not in self.process.said, "nobody is advised about settings that he did not make"
        commands = self.placed(block("sh", "export BK_METADATA"))
        self.printed = run(["bash", "-ec", commands]).stdout.splitlines()
        """What the commands of the next block have printed."""

    def placed(self, code: str) -> str:
        """Code with this one's directory in place of README's."""
        assert "/tmp/bk" in code
        return code.replace("/tmp/bk", str(self.home / "bk"))


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    found = Standalone(tmp_path_factory.mktemp("readme"))
    yield found
    assert found.process.stop(signal.SIGINT) == 0, found.process.said


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run to its end; it must end well."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240 * stretch(),
        check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **environment},
        preexec_fn=end_with_parent,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


def run_python(code: str, home: Path, **environment: str) -> str:
    script = home / "pasted.py"
    script.write_text(code)
    return run([sys.executable, str(script)], **environment).stdout


def test_standalone_prints_what_the_next_block_needs(standalone: Standalone) -> None:
    said = standalone.process.said
    exported, *_ = standalone.placed(block("sh", "export BK_METADATA")).splitlines()
    assert exported in said
    assert f"webhdfs://127.0.0.1:{standalone.port}/" in said
    assert len(re.findall(r"bookie b\d serves at 127\.0\.0\.1:\d+", said)) == 3


def test_the_commands_write_read_and_show_a_ledger(standalone: Standalone) -> None:
    lines = standalone.printed
    assert lines[:4] == ["0", "998", "999", "1000"]
    assert lines[4].startswith("ledger 0: closed, entries 0..999, 2893 bytes")
    assert sum("writable" in line for line in lines) == 3


def test_the_library_s_example_prints_its_entries(standalone: Standalone, tmp_path: Path) -> None:
    said = run_python(standalone.placed(block("python", "asyncio.run(main())")), tmp_path)
    assert said.splitlines() == ["0 durable on two of three bookies", "1 many", "2 at", "3 once"]


def test_the_example_for_threads_prints_its_entry(standalone: Standalone, tmp_path: Path) -> None:
    assert run_python(standalone.placed(block("python", "bookkeeper.sync")), tmp_path) == "[b'hello']\n"


def test_an_embedded_cluster_stands_in_for_the_address(tmp_path: Path) -> None:
    code = block("python", "bookkeeper.sync")
    assert '"sqlite:///tmp/bk/metadata.db"' in code
    code = code.replace('"sqlite:///tmp/bk/metadata.db"', f'"embedded://{tmp_path}/DIR?bookies=3"')
    assert run_python(code, tmp_path) == "[b'hello']\n"


def test_the_replicated_program_counts_on_the_cluster(standalone: Standalone, tmp_path: Path) -> None:
    (journal,) = re.findall(r"`'(bk\+sqlite:[^']*)'`", README)
    script = tmp_path / "pasted.py"
    script.write_text(block("python", "replicated"))
    port = free_port()
    command = [sys.executable, str(script), standalone.placed(journal), f"127.0.0.1:{port}"]
    with subprocess.Popen(command, cwd=ROOT, preexec_fn=end_with_parent) as program:
        try:
            until(lambda: asked(port, "add me 1 visits 5") == "5", what="an answer")
            assert [asked(port, line) for line in ("add me 1 visits 5", "add me 2 visits 5", "get visits")] == [
                "5",
                "10",
                "10",
            ]
        finally:
            program.kill()


def test_the_stream_s_program_appends_once_however_often_it_runs(tmp_path: Path) -> None:
    code = block("python", "from segments import sync").replace("/tmp/streams", f"{tmp_path}/streams")
    said = [run_python(code, tmp_path) for _ in range(2)]
    assert said[0] == said[1] and said[0].endswith("2 b'order 2'\n") and len(said[0].splitlines()) == 3


def asked(port: int, line: str) -> str:
    """What the program answers; empty if it does not."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20 * stretch()) as connection:
            connection.sendall(f"{line}\n".encode())
            return connection.makefile().readline().strip()
    except OSError:
        return ""


def test_every_block_of_commands_or_code_is_run_here() -> None:
    """A new block needs a test: these are the ones that have one. (``make demo`` and ``make test`` are CI's own.)"""
    languages = re.findall(r"^```(\w*)\n", README, re.MULTILINE)
    assert sorted(filter(None, languages)) == ["python", "python", "python", "python", "python", "sh", "sh"]


def test_files_and_commands_that_are_named_exist() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert link.startswith("https://") or (ROOT / link).exists(), f"README links to {link}"
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE):
        assert target in targets


@pytest.mark.spark
def test_the_spark_example_counts_and_a_second_run_finds_nothing_new(tmp_path: Path) -> None:
    from bookkeeper.launchers.java import find_java

    cluster = f"embedded://{tmp_path}/bk-notebook?bookies=3"
    port = free_port()
    code = block("python", "import spark_wal").replace("/tmp/bk-notebook", f"{tmp_path}/bk-notebook")
    with_port = code.replace(
        f'checkpoint_service("{cluster}")', f'checkpoint_service("{cluster}", listen="127.0.0.1:{port}")'
    )
    assert with_port != code
    environment = {"JAVA_HOME": find_java().home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short programs
    said = run_python(with_port, tmp_path, **environment)
    assert "Batch: 0" in said
    assert "value|count|" in said
    look = f"""
import urllib.request
import spark_wal
with spark_wal.checkpoint_service("{cluster}", listen="127.0.0.1:{free_port()}") as wal:
    for name in ("offsets", "commits"):
        with urllib.request.urlopen(wal.url + "/webhdfs/v1/counts/" + name + "?op=LISTSTATUS") as reply:
            print(name, b'"pathSuffix":"0"' in reply.read().replace(b" ", b""))
"""
    assert run_python(look, tmp_path) == "offsets True\ncommits True\n"
    assert "Batch:" not in run_python(with_port, tmp_path, **environment), "it was counted before"
