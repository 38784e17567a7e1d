"""Turns a table of options, as a TOML file has it, into a frozen dataclass. It refuses unknown options and converts
nothing.

Only this module uses ``cattrs``, and loads it with the first table: most processes read none. A field may be an
``int``, ``float`` (a whole number will do), ``str`` or ``bool``, a ``tuple[..., ...]`` of them (from a list), a
``Mapping`` (taken as it is), another such dataclass (from a table), and any of these ``| None``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin

from bookkeeper.errors import ConfigError

if TYPE_CHECKING:
    import cattrs

T = TypeVar("T")

_KINDS: Final = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def structure(cls: type[T], options: Mapping[str, Any]) -> T:
    """The dataclass ``cls`` with these options. The dataclass checks its own rules as always.

    Raises:
        ConfigError: names every option that is unknown, missing, of another type, or refused by the dataclass.
    """
    import cattrs

    try:
        return _converter().structure(options, cls)
    except cattrs.BaseValidationError as error:
        raise ConfigError("; ".join(_problems(error))) from error


def default_of(cls: type, name: str) -> Any:
    """The default of a dataclass's field, for whoever lets it be set elsewhere. Raises: LookupError: it has none."""
    for field in fields(cls):
        if field.name == name and field.default is not MISSING:
            return field.default
    raise LookupError(f"{cls.__name__}.{name} has no default")


@cache
def _converter() -> cattrs.Converter:
    import cattrs
    from cattrs.gen import make_dict_structure_fn

    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in (int, float, str, bool):
        converter.register_structure_hook(kind, _exactly)

    def dataclass_hook(cls: type) -> Callable[[Any, Any], Any]:
        made: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
        return lambda value, kind: made(_table(value), kind)

    def tuple_hook(value: Any, kind: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise TypeError(f"must be a list, not {_shown(value)}")
        items: Any = list[get_args(kind)[0]]  # type: ignore[misc]  # told at run time
        return tuple(converter.structure(value, items))

    converter.register_structure_hook_factory(is_dataclass, dataclass_hook)
    converter.register_structure_hook_func(_is(Mapping), lambda value, _: _table(value))
    converter.register_structure_hook_func(_is(tuple), tuple_hook)
    return converter


def _is(origin: Any) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) is origin


def _exactly(value: Any, kind: type) -> Any:
    """Convert nothing: "5" is not a number, and 1 is not a truth value. Only a whole number may stand for a float."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"must be {_KINDS[kind]}, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    """A value as its user wrote it, or its kind where that is long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case Mapping():
            return "a table"
        case list() | tuple():
            return "a list"
    return str(value)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"must be a table, not {_shown(value)}")
    return dict(value)


def _problems(error: BaseException, place: str = "") -> list[str]:
    """A line for each thing that is wrong, unknown options first. ``place`` is the option that ``error`` is about."""
    import cattrs

    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        where = f"{place}." if place else ""
        known = [each.name for each in fields(error.cl)]
        return [
            f"unknown option: {where}{name}{_meant(str(name), where, known)}"
            for name in sorted(error.extra_fields, key=str)
        ]
    if isinstance(error, BaseExceptionGroup):
        inner = sorted(error.exceptions, key=lambda each: not isinstance(each, cattrs.ForbiddenExtraKeysError))
        return [line for each in inner for line in _problems(each, _place(each, place))]
    if isinstance(error, KeyError):
        return [f"missing option: {place}"]
    return [str(error) if isinstance(error, ConfigError) else f"{place} {error}".strip()]


def _meant(name: str, where: str, known: Sequence[str]) -> str:
    import difflib  # only who has mistyped something pays for it

    near = difflib.get_close_matches(name, known, 1)
    return f" (did you mean {where}{near[0]}?)" if near else ""


def _place(error: BaseException, around: str) -> str:
    """Where in the table the error happened, as the note says that cattrs leaves at it."""
    import cattrs

    for note in getattr(error, "__notes__", ()):
        if isinstance(note, cattrs.AttributeValidationNote):
            return f"{around}.{note.name}" if around else note.name
        if isinstance(note, cattrs.IterableValidationNote):
            return f"{around}[{note.index}]"
    return around
