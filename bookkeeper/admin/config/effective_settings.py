"""Every setting of a bookie with its value and its source: command line, environment, file or default. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.secret import without_secrets

DEFAULT: Final = "default"
COMMAND_LINE: Final = "command line"
_NEVER_SHOWN: Final = frozenset({"auth.options"})
"""What may hold secrets."""


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as a bookie would have it."""

    name: str
    value: Any
    source: str
    """``command line``, a variable of the environment, the name of the file, or ``default``."""


def effective_settings(
    config: BookieConfig,
    *,
    given: Mapping[str, Any],
    variables: Mapping[str, str],
    in_file: Mapping[str, Any],
    file: str | None,
) -> list[EffectiveSetting]:
    """All settings of ``config``, in the order of its fields, those of a table as ``TABLE.NAME``.

    Args:
        given: what the command line and the environment said, as a TOML file has it.
        variables: of these, the names that a variable of the environment said, with the variable.
        in_file: what the file says; ``file`` is its name.
    """
    said, written = dict(_flat(given)), dict(_flat(in_file))
    found = []
    for name, value in _values(config):
        table = name.partition(".")[0]
        if name in said:
            source = variables.get(name, COMMAND_LINE)
        elif name in written and not (table != name and table in given):  # a table given replaces the file's whole one
            source = str(file)
        else:
            source = DEFAULT
        found.append(EffectiveSetting(name, _shown(name, value), source))
    return found


def _shown(name: str, value: Any) -> Any:
    if name in _NEVER_SHOWN:
        return f"{', '.join(value)} (not shown)" if value else ""
    if name == "metadata_uri":
        return without_secrets(value)
    return list(value) if isinstance(value, tuple) else value


def _values(config: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    for each in fields(config):
        value = getattr(config, each.name)
        if is_dataclass(value):
            yield from _values(value, f"{place}{each.name}.")
        else:
            yield f"{place}{each.name}", value


def _flat(options: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        full = f"{place}{name}"
        if isinstance(value, Mapping) and full not in _NEVER_SHOWN:
            yield from _flat(value, f"{full}.")
        else:
            yield full, value
