"""The names in a policy: one form for each name, so that no grant looks like another one."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from bookkeeper.errors import ConfigError

NAME_MAX: Final = 512
"""Characters of a name at most."""

_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_WILDCARD: Final = re.compile(r"[*?\[\]]")


def checked_name(name: str, what: str) -> str:
    """``name``, if it has the one form that names have here. ``what`` it names stands in the error.

    A name is taken as it is written: no wildcards, no escapes, no blanks around it, and letters in Unicode's composed
    form (NFC), since two forms of one name look alike.

    Raises:
        ConfigError: it has another form; the text says which rule it breaks, and how to write it.
    """
    shown = f"{what} {name[:100]!r}"
    if not name:
        raise ConfigError(f"{what} must not be empty")
    if len(name) > NAME_MAX:
        raise ConfigError(f"{shown}... has {len(name)} characters; {NAME_MAX} are allowed")
    if name != name.strip() or not name.isprintable():
        raise ConfigError(f"{shown} has blanks around it, or characters that cannot be seen; write it without them")
    if unicodedata.normalize("NFC", name) != name:
        raise ConfigError(f"{shown} is not in Unicode's composed form (NFC), and looks like a name that is")
    if _WILDCARD.search(name):
        raise ConfigError(
            f"{shown} has a wildcard; there are none: a name covers everything below it at a '/', and 'cluster' all"
        )
    if _ESCAPE.search(name):
        raise ConfigError(f"{shown} has an escape like %2F; write the character itself")
    return name
