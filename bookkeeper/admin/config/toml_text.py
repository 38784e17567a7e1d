"""Writes a table of options as TOML, which the standard library only reads. A codec.

It writes what settings have: texts, numbers, truth values, lists of them, and tables, those of the top level as
sections.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def toml_text(options: Mapping[str, Any]) -> str:
    """The options as the text of a TOML file; ``tomllib`` reads the same options back.

    Raises:
        TypeError: a value that no setting has.
    """
    lines = [f"{_key(name)} = {_value(value)}" for name, value in options.items() if not isinstance(value, Mapping)]
    for name, table in options.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def _key(name: str) -> str:
    return (
        name
        if name and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name)
        else _text(name)
    )


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value:+}")
        case str():
            return _text(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    raise TypeError(f"no setting is a {type(value).__name__}")


def _text(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for the one control character that JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
