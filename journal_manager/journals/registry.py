"""Finds the backend of a scheme, by entry points of the group ``journal.backends``.

Built-in backends are registered like those of other packages, in ``pyproject.toml``. The framework never
imports a backend.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeVar

from journal_manager.errors import JournalConfigError, UnknownSchemeError
from journal_manager.journals.backend import Backend
from journal_manager.journals.journal_uri import JournalURI

ENTRY_POINT_GROUP: Final = "journal.backends"

T = TypeVar("T")


@functools.cache
def declared_backends() -> tuple[EntryPoint, ...]:
    """What the installed packages declare. Looked up once: it reads the metadata of everything that is installed."""
    return tuple(entry_points(group=ENTRY_POINT_GROUP))


def installed_backends() -> Mapping[str, EntryPoint]:
    """The installed backends: scheme -> entry point. What is installed after the first look is not seen.

    Raises:
        JournalConfigError: two packages claim one scheme.
    """
    found: dict[str, EntryPoint] = {}
    for point in declared_backends():
        if found.setdefault(point.name, point).value != point.value:
            raise JournalConfigError(
                f"two packages bring a backend for {point.name}: ({found[point.name].value} and {point.value}); "
                "uninstall one of them"
            )
    return found


def backend_for(uri: JournalURI) -> Backend:
    """Make the backend of the address's scheme.

    Raises:
        UnknownSchemeError: none is installed; the error lists those that are.
        JournalConfigError: it is installed and cannot be loaded (``__cause__`` says why).
    """
    known = installed_backends()
    if uri.scheme not in known:
        raise UnknownSchemeError(
            f"no backend is installed for {uri.scheme}: journals; installed are {', '.join(sorted(known)) or 'none'}"
        )
    try:
        backend: Backend = known[uri.scheme].load()()
    except Exception as error:
        raise JournalConfigError(
            f"the backend for {uri.scheme}: journals ({known[uri.scheme].value}) cannot be loaded"
        ) from error
    return backend


def parse_options(kind: type[T], uri: JournalURI, options: Mapping[str, object], *, also: tuple[str, ...] = ()) -> T:
    """A backend's options as its dataclass ``kind``: the URI's query (text, converted), then keyword arguments.

    ``also`` names what the backend has taken out of the address itself; a list of the known options has it, too.

    Raises:
        JournalConfigError: unknown key (the known ones are listed), or a text that is not of the field's type.
    """
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if unknown := sorted((uri.query.keys() | options.keys()).difference(known)):
        if unknown[0] in uri.query:
            known = [*also, *(name for name in known if _has_text(hints[name]))]
        raise JournalConfigError(
            f"{unknown[0]!r} is no option of {uri.scheme}: journals; the options are {', '.join(known) or 'none'}"
        )
    from_query = {key: _convert(key, text, hints[key]) for key, text in uri.query.items()}
    return kind(**{**from_query, **options})


def _has_text(hint: Any) -> bool:
    """Whether a value of this type can be given in an address."""
    allowed = typing.get_args(hint) or (hint,)
    return any(each in (bool, int, float, bytes, str) or isinstance(each, str) for each in allowed)


def _convert(key: str, text: str, hint: Any) -> object:
    allowed = typing.get_args(hint) or (hint,)
    try:
        if bool in allowed:
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        if int in allowed:
            return int(text)
        if float in allowed:
            return float(text)
        if bytes in allowed:
            return text.encode()
        if str in allowed or text in allowed:
            return text
    except (KeyError, ValueError) as error:
        raise JournalConfigError(f"option {key}: {text!r} is no value of this option") from error
    raise JournalConfigError(f"option {key}: it cannot be given in an address")
