"""From a table of options, as a TOML file has it, to a frozen dataclass: nothing unknown, nothing converted.

A field may be an ``int``, ``float`` (a whole number will do), ``str`` or ``bool``, a ``tuple[..., ...]`` of them (from
a list), a ``Mapping`` (taken as it is), another such dataclass (from a table), and any of these ``| None``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from bookkeeper.errors import ConfigError

T = TypeVar("T")


def structure(cls: type[T], options: Mapping[str, Any]) -> T:
    """The dataclass ``cls`` with these options; its own rules are checked as always.

    Raises:
        ConfigError: an unknown option, a missing one, a value of another type: all of them, each by name. Or the rules
            that do not hold.
    """
    problems: list[str] = []
    made = _structured(cls, options, "", problems)
    if made is None:
        raise ConfigError("; ".join(problems))
    return made


def _structured(cls: type[T], options: Mapping[str, Any], where: str, problems: list[str]) -> T | None:
    """None: ``problems`` says why. ``where``: the tables around it, each with a dot."""
    known = {field.name: field for field in fields(cls) if field.init}  # type: ignore[arg-type]  # a dataclass
    before = len(problems)
    problems += [f"unknown option: {where}{name}" for name in sorted(options.keys() - known.keys(), key=str)]
    problems += [
        f"missing option: {where}{field.name}"
        for field in known.values()
        if field.name not in options and field.default is MISSING and field.default_factory is MISSING
    ]
    kinds = get_type_hints(cls) if options else {}
    values = {
        name: _value(kinds[name], value, f"{where}{name}", problems) for name, value in options.items() if name in known
    }
    if len(problems) > before:
        return None
    try:
        return cls(**values)
    except ConfigError as error:
        problems.append(str(error))
        return None


def _value(kind: Any, value: Any, name: str, problems: list[str]) -> Any:
    """``value`` as a field of this kind has it; anything, and a problem more, if it is of another."""
    options = get_args(kind)
    if NoneType in options:
        (kind,) = (option for option in options if option is not NoneType)
        return None if value is None else _value(kind, value, name, problems)
    origin = get_origin(kind) or kind
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_value(options[0], item, f"{name}[{at}]", problems) for at, item in enumerate(value))
    if isinstance(origin, type) and is_dataclass(origin) and isinstance(value, Mapping):
        return _structured(origin, value, f"{name}.", problems)
    if origin is Mapping and isinstance(value, Mapping):
        return dict(value)
    if origin is float and type(value) is int:
        return float(value)
    if type(value) is not origin:
        expected = _IN_WORDS.get(origin, "a table" if is_dataclass(origin) else origin.__name__)
        problems.append(f"{name}: {expected} expected, got {value!r}")
    return value


_IN_WORDS: Final[Mapping[object, str]] = {tuple: "a list", Mapping: "a table"}
