"""Settings as TOML."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.admin.config.toml_text import toml_text

_PLAIN = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(blacklist_categories=["Cs"])),
)
_VALUES = st.one_of(_PLAIN, st.lists(_PLAIN, max_size=3))
_NAMES = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(_NAMES, st.one_of(_VALUES, st.dictionaries(_NAMES, _VALUES, max_size=3)), max_size=5))
def test_the_standard_library_reads_the_same_back(options: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(options)) == options


def test_tables_are_sections_and_those_inside_stand_on_their_line() -> None:
    assert toml_text({"a": 1, "t": {"b": True, "u": {"c": "x"}}}) == 'a = 1\n\n[t]\nb = true\nu = {c = "x"}\n'


def test_a_value_of_no_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        toml_text({"a": b"x"})
