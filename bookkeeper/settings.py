"""From a table of options, as a TOML file has it, to a frozen dataclass: nothing unknown, nothing converted.

The room of ``cattrs``. A field may be an ``int``, ``float`` (a whole number will do), ``str`` or ``bool``, a
``tuple[..., ...]`` of them (from a list), a ``Mapping`` (taken as it is), another such dataclass (from a table), and
any of these ``| None``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import cattrs
from cattrs.gen import make_dict_structure_fn

from bookkeeper.errors import ConfigError

T = TypeVar("T")


def structure(cls: type[T], options: Mapping[str, Any]) -> T:
    """The dataclass ``cls`` with these options; its own rules are checked as always.

    Raises:
        ConfigError: an unknown option, a missing one, a value of another type: all of them, each by name. Or the rules
            that do not hold.
    """
    try:
        return _converter().structure(options, cls)
    except cattrs.BaseValidationError as error:
        raise ConfigError("; ".join(_problems(error))) from error


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in (int, float, str, bool):
        converter.register_structure_hook(kind, _exactly)

    def dataclass_hook(cls: type) -> Callable[[Any, Any], Any]:
        made: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
        return lambda value, kind: made(_table(value), kind)

    def tuple_hook(value: Any, kind: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise TypeError(f"a list expected, got {value!r}")
        items: Any = list[get_args(kind)[0]]  # type: ignore[misc]  # told at run time
        return tuple(converter.structure(value, items))

    converter.register_structure_hook_factory(is_dataclass, dataclass_hook)
    converter.register_structure_hook_func(_is(Mapping), lambda value, _: _table(value))
    converter.register_structure_hook_func(_is(tuple), tuple_hook)
    return converter


def _is(origin: Any) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


def _exactly(value: Any, kind: type) -> Any:
    """No conversions: "5" is not a number, 1 is not a truth value; a whole number may stand for a fraction."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} expected, got {value!r}")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a table expected, got {value!r}")
    return dict(value)


def _problems(error: BaseException, place: str = "") -> list[str]:
    """What is wrong, a line each; ``place`` is the option it is about. What is unknown comes first."""
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        where = f"{place}." if place else ""
        return [f"unknown option: {where}{name}" for name in sorted(error.extra_fields, key=str)]
    if isinstance(error, BaseExceptionGroup):
        inner = sorted(error.exceptions, key=lambda each: not isinstance(each, cattrs.ForbiddenExtraKeysError))
        return [line for each in inner for line in _problems(each, _place(each, place))]
    if isinstance(error, KeyError):
        return [f"missing option: {place}"]
    return [str(error) if isinstance(error, ConfigError) else f"{place}: {error}"]


def _place(error: BaseException, around: str) -> str:
    """Where in the table it happened, by the note that cattrs leaves at an error."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, cattrs.AttributeValidationNote):
            return f"{around}.{note.name}" if around else note.name
        if isinstance(note, cattrs.IterableValidationNote):
            return f"{around}[{note.index}]"
    return around
