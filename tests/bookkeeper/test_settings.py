"""Options become a frozen object: what is unknown, missing or of another type is named, and nothing is converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from bookkeeper.errors import ConfigError, require_range
from bookkeeper.settings import structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    seconds: float = 1.0
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_range(self, "seconds", above=0, table="inner.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    size: int
    on: bool = False
    text: str | None = None
    inner: Inner = field(default_factory=Inner)
    maybe: Inner | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)


def test_every_kind_of_option_is_taken_as_it_is() -> None:
    rest = {"a": [1, {"b": None}]}
    given = {"size": 3, "on": True, "text": "x", "inner": {"seconds": 2, "names": ["a", "b"]}, "rest": rest}
    made = structure(Outer, given)
    assert made == Outer(size=3, on=True, text="x", inner=Inner(seconds=2.0, names=("a", "b")), rest=rest)
    assert type(made.inner.seconds) is float
    assert structure(Outer, {"size": 3, "text": None, "maybe": {}}) == Outer(size=3, maybe=Inner())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": "3"}, 'size must be a whole number, not "3"'),
        ({"size": True}, "size must be a whole number, not true"),
        ({"size": 3.0}, "size must be a whole number, not 3.0"),
        ({"size": 3, "on": 1}, "on must be true or false, not 1"),
        ({"size": 3, "text": 4}, "text must be a text, not 4"),
        ({"size": 3, "inner": {"seconds": "2"}}, 'inner.seconds must be a number, not "2"'),
        ({"size": 3, "inner": {"seconds": True}}, "inner.seconds must be a number, not true"),
        ({"size": 3, "inner": {"names": "ab"}}, 'inner.names must be a list, not "ab"'),
        ({"size": 3, "inner": {"names": ["a", 5]}}, "inner.names[1] must be a text, not 5"),
        ({"size": 3, "inner": 5}, "inner must be a table, not 5"),
        ({"size": 3, "maybe": 5}, "maybe must be a table, not 5"),
        ({"size": 3, "inner": None}, "inner must be a table, not nothing"),
        ({"size": 3, "rest": [1]}, "rest must be a table, not a list"),
        ({"size": 3, "inner": {"second": 1}}, "unknown option: inner.second (did you mean inner.seconds?)"),
        ({}, "missing option: size"),
        ({"size": {"a": 1}}, "size must be a whole number, not a table"),
        ({"size": 3, "inner": {"seconds": 0}}, "inner.seconds must be more than 0, not 0.0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        structure(Outer, options)
    assert str(error.value) == said


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        structure(Outer, {"sise": 3, "on": "yes", "inner": {"seconds": -1, "names": []}, "maybe": {"x": 1}})
    assert str(error.value).split("; ") == [
        "unknown option: sise (did you mean size?)",
        "missing option: size",
        'on must be true or false, not "yes"',
        "inner.seconds must be more than 0, not -1.0",
        "unknown option: maybe.x",
    ]
