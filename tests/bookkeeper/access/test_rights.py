"""X12: the words for rights."""

from __future__ import annotations

import pytest

from bookkeeper.access import Right
from bookkeeper.access.rights import parse_rights
from bookkeeper.errors import ConfigError


def test_a_list_of_rights() -> None:
    assert parse_rights("append, read") == {Right.APPEND, Right.READ}


@pytest.mark.parametrize("text", ["", "append,", "all", "append read", "Append"])
def test_what_is_no_right_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="the rights are append, read, recover"):
        parse_rights(text)
