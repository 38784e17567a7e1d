"""Options become a frozen object: what is unknown, missing or of another type is named, and nothing is converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from bookkeeper.errors import ConfigError, require
from bookkeeper.settings import structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    seconds: float = 1.0
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(self.seconds > 0, "inner.seconds > 0")


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
        ({"size": "3"}, "size: int expected, got '3'"),
        ({"size": True}, "size: int expected, got True"),
        ({"size": 3.0}, "size: int expected, got 3.0"),
        ({"size": 3, "on": 1}, "on: bool expected, got 1"),
        ({"size": 3, "text": 4}, "text: str expected, got 4"),
        ({"size": 3, "inner": {"seconds": "2"}}, "inner.seconds: float expected, got '2'"),
        ({"size": 3, "inner": {"seconds": True}}, "inner.seconds: float expected, got True"),
        ({"size": 3, "inner": {"names": "ab"}}, "inner.names: a list expected, got 'ab'"),
        ({"size": 3, "inner": {"names": ["a", 5]}}, "inner.names[1]: str expected, got 5"),
        ({"size": 3, "inner": 5}, "inner: a table expected, got 5"),
        ({"size": 3, "maybe": 5}, "maybe: a table expected, got 5"),
        ({"size": 3, "inner": None}, "inner: a table expected, got None"),
        ({"size": 3, "rest": [1]}, "rest: a table expected, got [1]"),
        ({"size": 3, "inner": {"second": 1}}, "unknown option: inner.second"),
        ({}, "missing option: size"),
        ({"size": 3, "inner": {"seconds": 0}}, "required: inner.seconds > 0"),
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
        "unknown option: sise",
        "missing option: size",
        "on: bool expected, got 'yes'",
        "required: inner.seconds > 0",
        "unknown option: maybe.x",
    ]
