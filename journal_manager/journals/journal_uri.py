"""A journal's address, taken apart: ``SCHEME:PATH?KEY=VALUE``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from journal_manager.errors import JournalConfigError

_PLAIN: Final = "/ !$&'()*+,:;=@~"
"""What stands in an address as it is meant."""


@dataclass(frozen=True, slots=True)
class JournalURI:
    """``scheme:path?key=value`` or ``scheme://authority/path?key=value``, taken apart."""

    scheme: str
    authority: str
    path: str
    query: Mapping[str, str] = field(repr=False)
    """The options; a password may be among them."""

    @property
    def name(self) -> str:
        """Authority and path as one name, without slashes at the ends: ``bk:a/b`` and ``bk:///a/b`` are both a/b."""
        return f"{self.authority}/{self.path.strip('/')}".strip("/")

    def __str__(self) -> str:
        head = f"//{self.authority}" if self.authority else ""
        return f"{self.scheme}:{head}{quote(self.path, safe=_PLAIN)}"


def parse_uri(text: str) -> JournalURI:
    """Take a journal's address apart.

    Raises:
        JournalConfigError: no scheme, a fragment, a key given twice, or a wrong escape.
    """
    if not isinstance(text, str):
        raise JournalConfigError(f"a journal's address is a text such as file:///DIRECTORY, not {type(text).__name__}")
    parts, told = urlsplit(text), _shown(text)
    if not parts.scheme or not re.match(r"[a-z][a-z0-9+.-]*:", text) or parts.fragment:
        raise JournalConfigError(f"expected SCHEME:PATH[?KEY=VALUE&…], got {told}")
    try:
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise JournalConfigError(
            f"{told} is no journal's address: an option is KEY=VALUE, and options are joined by &"
        ) from error
    if len(dict(query)) != len(query):
        raise JournalConfigError(f"{told} gives a key twice")
    return JournalURI(parts.scheme, _unescaped(parts.netloc, told), _unescaped(parts.path, told), dict(query))


def _unescaped(part: str, told: str) -> str:
    try:
        if re.search("%(?![0-9A-Fa-f]{2})", part) is None:
            return unquote(part, errors="strict")
    except UnicodeDecodeError:
        pass
    raise JournalConfigError(
        f"{told} has a % that begins no escape of two digits (as %20 does), or escapes that are no UTF-8: write %25 "
        "for a % that is meant as such"
    )


def _shown(text: str) -> str:
    """An address for messages: without its options' values, of which one may be a password."""
    return repr(re.sub(r"(?<=[?&])([^=&]*)=[^&]*", r"\1=...", text))
