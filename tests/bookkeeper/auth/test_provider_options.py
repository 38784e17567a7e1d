"""What the providers that are built in have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.auth.provider_options import LOOK_S, Freshness, file_option
from bookkeeper.errors import ConfigError
from bookkeeper.real import WatchedFile
from tests.bookkeeper.auth.sasl.test_providers import ByHand, private


def test_the_option_is_a_file_and_nothing_else() -> None:
    assert file_option({"file": "/x"}, "token", "keys") == "/x"
    with pytest.raises(ConfigError, match=r'"token" needs auth\.options\.file, .*\(keys\)'):
        file_option({}, "token", "keys")
    with pytest.raises(ConfigError, match=r"auth\.options\.fiel is unknown"):
        file_option({"fiel": "/x"}, "token", "keys")


@pytest.mark.rule("X6")
def test_clients_make_it_look_once_a_second_at_most(tmp_path: Path) -> None:
    clock = ByHand()
    file = WatchedFile(private(tmp_path / "file", "1"), lambda text, source: text)
    freshness = Freshness(clock)
    private(tmp_path / "file", "2")
    clock.at += LOOK_S / 2
    freshness.refresh(file)
    assert file.value == "1"
    clock.at += LOOK_S / 2
    freshness.refresh(file)
    assert file.value == "2"
    (tmp_path / "file").unlink()
    clock.at += LOOK_S
    freshness.refresh(file)
    assert file.value == "2", "what cannot be read leaves the old value"
