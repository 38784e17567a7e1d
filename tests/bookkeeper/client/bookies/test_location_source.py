"""X46: only the source that the settings name is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bookkeeper.client.bookies.bookie_locations import location_source
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import ConfigError


def by_number(names: Sequence[str]) -> Mapping[str, str]:
    return {name: f"/r{number}" for number, name in enumerate(names)}


def test_a_function_and_a_file_are_sources(tmp_path: Path) -> None:
    assert location_source(f"{__name__}:by_number")(["a", "b"]) == {"a": "/r0", "b": "/r1"}
    (tmp_path / "racks").write_text("a /r1\n")
    assert location_source(f"file:{tmp_path}/racks")(["a", "b"]) == {"a": "/r1"}
    with pytest.raises(OSError, match="No such file"):
        location_source("script:/no/such/script")(["a"])


@pytest.mark.parametrize("text", ["no.such.module:f", f"{__name__}:nothing"])
def test_what_is_not_there_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"locations_from {text}"):
        location_source(text)


@pytest.mark.parametrize("text", ["", "file:racks", "script:", "/racks", "module", "a b:c"])
def test_the_settings_refuse_what_is_no_source(text: str) -> None:
    with pytest.raises(ConfigError, match="locations_from must be file:/PATH, script:/PATH or MODULE:FUNCTION"):
        ClientConfig(locations_from=text)
