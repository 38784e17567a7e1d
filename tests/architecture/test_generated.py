"""Generated code is what its generator makes of the checked-in sources, and dependencies say what they are for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    str(path.relative_to(ROOT)) for package in ("bookkeeper", "segments") for path in (ROOT / package).rglob("*.proto")
)


def generator() -> object:
    return pytest.importorskip("grpc_tools.protoc")


@pytest.mark.rule("X66")
@pytest.mark.parametrize("source", SOURCES)
def test_generating_the_messages_again_gives_the_same_bytes(source: str, tmp_path: Path) -> None:
    protoc = generator()
    command = ["protoc", f"-I{ROOT}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", source]
    assert protoc.main(command) == 0  # type: ignore[attr-defined]
    for suffix in ("_pb2.py", "_pb2.pyi"):
        name = source.removesuffix(".proto") + suffix
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes(), f"generate {name} anew: make proto"


@pytest.mark.rule("X66")
def test_generated_code_names_its_generator() -> None:
    assert len(SOURCES) == 3
    versions = {
        re.search(r"Protobuf Python Version: ([\d.]+)", (ROOT / source.replace(".proto", "_pb2.py")).read_text())[1]  # type: ignore[index]
        for source in SOURCES
    }
    assert len(versions) == 1
    least = re.search(r'"protobuf>=([\d.]+),<(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert least is not None
    assert versions == {least[1]}, "the least version that is allowed refuses generated code that is newer, by a patch"
    assert int(least[2]) == int(least[1].partition(".")[0]) + 2, "this major version and the next"


@pytest.mark.rule("X61")
def test_every_dependency_at_run_time_says_what_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    named = tomllib.loads(text)["project"]["dependencies"]
    silent = [each for each in named if not re.search(rf'^ *"{re.escape(each)}",  # \w', text, flags=re.MULTILINE)]
    assert silent == []
    assert len(named) < 12, "a new one needs a better reason than a line"


@pytest.mark.rule("X62")
def test_what_is_installed_for_development_is_fixed_by_hashes() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    packages = [at for at, line in enumerate(lines) if re.match(r"[a-z0-9]", line)]
    assert len(packages) > 30
    for at in packages:
        assert re.fullmatch(r"[\w.\[\],-]+==[\w.!+]+( ; .*)? \\", lines[at]), lines[at]
        assert "--hash=sha256:" in lines[at + 1], lines[at]
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert not [each for each in named if "==" in each], "a published package has ranges"


@pytest.mark.rule("X65")
def test_where_to_report_a_weakness_is_said_and_no_person_is_named() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert "security advisories" in text
    assert "@" not in text
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"| {version.rpartition('.')[0]} |" in text, "the table of supported versions names this one"
