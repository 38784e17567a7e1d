"""``bk console``: what it refuses before it serves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bookkeeper.admin.cli import bk
from bookkeeper.console import templates
from bookkeeper.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--listen", "0.0.0.0:80"], "sent in clear"),
        (["--actions", "repair"], "needs --token-file"),
        (["--actions", "repair, reboot", "--token-file", "t"], "no action reboot"),
    ],
)
def test_what_it_refuses(tmp_path: Path, options: list[str], says: str) -> None:
    found = CliRunner().invoke(bk, ["console", "-m", f"sqlite://{tmp_path}/none.db", *options])
    assert isinstance(found.exception, ConfigError) and says in str(found.exception)


def test_without_its_library_it_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    templates.environment.cache_clear()
    found = CliRunner().invoke(bk, ["console", "-m", f"sqlite://{tmp_path}/none.db"])
    assert isinstance(found.exception, ModuleNotFoundError) and found.exception.name == "jinja2"
