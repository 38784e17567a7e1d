"""X12: a name has one form in a policy."""

from __future__ import annotations

import pytest

from bookkeeper.access.names import NAME_MAX, checked_name
from bookkeeper.errors import ConfigError


@pytest.mark.parametrize("name", ["etl", "spiffe://example.org/spark", "a b", "é", "a" * NAME_MAX, "50% of it"])
def test_a_name_is_taken_as_it_is_written(name: str) -> None:
    assert checked_name(name, "a name") == name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "must not be empty"),
        ("a" * (NAME_MAX + 1), "512 are allowed"),
        (" etl", "blanks around it"),
        ("e\u200btl", "cannot be seen"),
        ("e\u0301", "composed form"),
        ("app*", "has a wildcard"),
        ("a%2Fb", "write the character itself"),
    ],
)
def test_what_looks_like_another_name_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        checked_name(name, "a name")
