"""docs/settings.md is what the code says."""

from __future__ import annotations

from dataclasses import fields

import click
import pytest

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.storage.base.config import StorageConfig
from tests.architecture.settings_page import PAGE, SERVERS, command, page


def test_the_page_is_made_from_the_code() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.architecture.settings_page"


@pytest.mark.parametrize("cls", [BookieConfig, StorageConfig])
def test_each_field_of_a_bookies_file_has_its_row(cls: type) -> None:
    text = PAGE.read_text()
    for each in fields(cls):
        assert f"| `{each.name}` |" in text or f"`[{each.name}]`" in text, each.name


@pytest.mark.parametrize("words", SERVERS, ids="-".join)
def test_each_option_of_a_server_has_its_row(words: tuple[str, ...]) -> None:
    text = PAGE.read_text()
    options = [each for each in command(words).params if isinstance(each, click.Option) and not each.hidden]
    assert options
    for each in options:
        assert f"`{each.opts[0]}`" in text and each.help, each.name
