from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rivals.drivers import KAFKA, cache, digest, nats_programs
from bookkeeper.errors import ConfigError


def test_what_changes_in_a_source_is_built_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    before = digest([tmp_path / "a"])
    (tmp_path / "a").write_text("two")
    assert digest([tmp_path / "a"]) != before


def test_without_go_it_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cache() == tmp_path / "bookkeeper-py"
    with pytest.raises(ConfigError, match="no go on the PATH"):
        nats_programs()


def test_the_version_is_the_one_that_is_fetched() -> None:
    pom = Path(__file__).parents[3] / "benchmarks" / "rivals" / "pom.xml"
    assert f"<version>{KAFKA}</version>" in pom.read_text()
