"""Requests that come from a web page in somebody's browser, or are forged: they are refused (X49). Pure.

No client of ours sends one. A page of another origin may neither change anything nor start long work here, and a page
that points its own name at this machine is not served.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(:[0-9]{1,5})?")
"""The characters that a ``Host`` may have. It becomes part of redirects."""

_OWN_PAGES: Final = ("none", "same-origin")
"""What a browser says (``Sec-Fetch-Site``) of an address that was typed, and of our own pages."""


_ONCE: Final = ("authorization", "host")
"""Headers of which a request has one at most: this side and a proxy in front of it could each believe another one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not served."""

    status: int
    reason: str


def refusal(method: str, headers: Mapping[str, str], scheme: str, hosts: frozenset[str] | None) -> Refusal | None:
    """Why a request with these headers is not served; None: it is. ``hosts`` are our names besides addresses; None if
    any name is ours."""
    names = [name.lower() for name, _ in headers.items()]
    if any(names.count(each) > 1 for each in _ONCE):
        return Refusal(400, "A header that says who asks, or what host is meant, stands there twice")
    host = headers.get("Host")
    known = _HostVerdict.OURS if host is None else _judge_host(host, hosts)
    if known is _HostVerdict.NO_HOST:
        return Refusal(400, "The Host header names no host")
    if headers.get("Sec-Fetch-Site", "none").lower() not in _OWN_PAGES:
        return Refusal(403, "A page of another origin may ask for nothing here")
    origin = headers.get("Origin")
    changes = method not in ("GET", "HEAD", "OPTIONS")
    if changes and origin is not None and origin.lower() != f"{scheme}://{host}".lower():
        return Refusal(403, "A page of another origin may change nothing here")
    if known is _HostVerdict.ANOTHERS:
        return Refusal(421, "Ask for 127.0.0.1 or localhost here, or start the gateway with --advertise HOST:PORT")
    return None


class _HostVerdict(Enum):
    """What a ``Host`` header names."""

    OURS = auto()
    ANOTHERS = auto()
    NO_HOST = auto()


@lru_cache(maxsize=64)  # a client names the same one in each request
def _judge_host(host: str, names: frozenset[str] | None) -> _HostVerdict:
    """Judge a ``Host``. ``names`` are our names besides addresses; None if any name is ours."""
    if not _HOST.fullmatch(host):
        return _HostVerdict.NO_HOST
    return _HostVerdict.OURS if names is None or _is_of(host, names) else _HostVerdict.ANOTHERS


def _is_of(host: str, names: Collection[str]) -> bool:
    """Whether this ``Host`` is an address or one of these names. A web page's own name is never an address."""
    name = host.rpartition(":")[0] if re.search(r":[0-9]+$", host) else host
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name.strip("[]")))
    return name.lower().rstrip(".") in names
