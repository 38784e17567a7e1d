"""A user of the gateway of streams in Java, who has the shipped protocol, and nothing of ours."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.launchers.java import find_java
from bookkeeper.launchers.machine_speed import stretch
from examples.apache_servers import QUICK_START, fetch_jars
from examples.apache_servers.jars import cache_directory
from tests.segments.gateway.processes import ROOT, gateway, standalone

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
"""More than all time limits of children together, with Maven's 600 s."""

for _name in ("grpc", "grpc_health", "grpc_reflection"):
    pytest.importorskip(_name)

GRPC: Final = "1.80.0"
"""The versions that ``pom.xml`` asks for."""
PROTOBUF: Final = "4.35.1"
PLATFORMS: Final = {"x86_64": "linux-x86_64", "aarch64": "linux-aarch_64"}
"""``uname -m`` -> what Maven Central calls the programs for it."""
CHILD_S: Final = 180.0

_HERE: Final = Path(__file__).parent / "stream_stub"
_SOURCE: Final = _HERE / "StreamStub.java"
_PROTOCOL: Final = ROOT / "segments" / "protocol" / "segments.proto"
_WINDOW_BYTES: Final = 500
"""Less than what the story appends as one call."""


class CannotRunError(Exception):
    """What the story needs and this machine has not."""


def fetched(environment: dict[str, str]) -> tuple[str, str, Path]:
    """What this machine brings, and what Maven fetches, once: java, javac, and the directory of jars and programs.

    Raises:
        CannotRunError: something is missing; says what.
    """
    named = PLATFORMS.get(platform.machine())
    if named is None:
        raise CannotRunError(f"Maven Central has no protoc for {platform.machine()}")
    try:
        java = find_java(environment)
        compiler = Path(java.home) / "bin" / "javac"
        if not compiler.exists():
            raise CannotRunError(f"there is no javac beside {java.executable}: install a JDK")
        pom = (_HERE / "pom.xml").read_bytes().replace(b"linux-x86_64", named.encode())
        name = f"stream-stub-{hashlib.sha256(pom).hexdigest()[:16]}"
        cache = cache_directory(environment).with_name(name)
        fetch_jars(f"gRPC {GRPC} for Java", pom, cache, f"protobuf-java-{PROTOBUF}.jar", environment)
    except ConfigError as error:
        raise CannotRunError(str(error)) from error
    return java.executable, str(compiler), cache


def run(command: Sequence[str], directory: Path) -> str:
    """Run it to its end in this directory; what it prints on standard output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CLASSPATH", "PYTHONPATH")}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=CHILD_S * stretch(),
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def program(cache: Path, name: str, directory: Path) -> str:
    """A program that Maven has fetched, made executable in this directory."""
    (found,) = cache.glob(f"{name}-linux-*.exe")
    copy = directory / name
    shutil.copyfile(found, copy)
    copy.chmod(0o755)
    return str(copy)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the story: its stub is generated and compiled here, by what a user would take."""
    try:
        java, compiler, cache = fetched(dict(os.environ))
    except CannotRunError as missing:
        pytest.skip(f"no client in Java of the gateway of streams: {str(missing).splitlines()[0]}")
    place = tmp_path_factory.mktemp("java-stub")
    sources, classes = place / "sources", place / "classes"
    sources.mkdir()
    shutil.copy(_PROTOCOL, place)
    plugin = program(cache, f"protoc-gen-grpc-java-{GRPC}", place)
    out = (f"--java_out={sources}", f"--plugin=protoc-gen-grpc-java={plugin}", f"--grpc-java_out={sources}")
    run([program(cache, f"protoc-{PROTOBUF}", place), "-I.", *out, _PROTOCOL.name], place)
    stubs = sorted(str(path) for path in sources.rglob("*.java"))
    javac = [compiler, "-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", f"{cache}/*", "-d", str(classes)]
    run([*javac, *stubs, str(_SOURCE)], place)
    return [java, "-Xmx256m", *QUICK_START, "-cp", f"{classes}{os.pathsep}{cache}/*", "StreamStub"]


@pytest.fixture(scope="module")
def metadata(user: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster; none is started where the story cannot be run."""
    with standalone(tmp_path_factory.mktemp("cluster") / "bk") as uri:
        yield uri


def test_a_client_in_java_appends_and_reads_it_back(metadata: str, user: list[str], tmp_path: Path) -> None:
    """SEG-116, SEG-117, SEG-120: unary and streaming appends give equal results, within a window of a few batches; a
    refused call has its status, its code, and what became of it."""
    with gateway(metadata, tmp_path / "gateway.log", "--window-bytes", str(_WINDOW_BYTES)) as served:
        assert run([*user, "appends", served.address], tmp_path) == "done\n"
        assert served.end() == 0
        assert "Traceback" not in served.log


def test_a_client_in_java_follows_the_end_with_credits(metadata: str, user: list[str], tmp_path: Path) -> None:
    """SEG-121: a tail honours flow control and resumes from a token."""
    with gateway(metadata, tmp_path / "gateway.log") as served:
        assert run([*user, "reads", served.address], tmp_path) == "done\n"
        assert "Traceback" not in served.log


def test_what_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Maven and nothing fetched; no JDK; no programs for the machine."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    try:
        java = find_java()
    except ConfigError as missing:
        pytest.skip(str(missing))
    bare = tmp_path / "bin"
    bare.mkdir()
    environment = {"HOME": str(tmp_path), "PATH": str(bare)}
    (bare / "java").symlink_to(java.executable)
    if (Path(java.home) / "bin" / "javac").exists():
        with pytest.raises(CannotRunError, match="no mvn on the PATH"):
            fetched(environment)
    runtime = tmp_path / "jre" / "bin" / "java"
    runtime.parent.mkdir(parents=True)
    runtime.write_text(f'#!/bin/sh\nexec {java.executable} "$@"\n')
    runtime.chmod(0o755)
    with pytest.raises(CannotRunError, match="no javac beside"):
        fetched({**environment, "JAVA_HOME": str(tmp_path / "jre")})
    monkeypatch.setattr(platform, "machine", lambda: "z80")
    with pytest.raises(CannotRunError, match="no protoc for z80"):
        fetched(environment)
