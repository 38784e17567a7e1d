"""Quotas as people write them: ``bytes_kept=10G``, ``ledgers=100``, ``adds_per_s=none``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bookkeeper.access import Quota, QuotaKind
from bookkeeper.errors import ConfigError

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NONE: Final = "none"


def changed_quota(quota: Quota, words: Sequence[str]) -> Quota:
    """The quota with these limits changed; ``none`` takes one away, and K, M, G and T are powers of 1024.

    Raises:
        ConfigError: a word is no limit; the text says how one is written.
    """
    for word in words:
        name, equals, value = word.partition("=")
        known = [kind.value for kind in QuotaKind]
        if not equals or name not in known:
            raise ConfigError(f"{word!r} is no quota: write one of {', '.join(known)}, '=' and a number or none")
        limit = None if value == _NONE else _number(name, value)
        quota = replace(quota, **{name: limit})
    return Quota.of(quota.document())


def _number(name: str, value: str) -> int:
    found = re.fullmatch(r"([0-9]{1,20})([KMGT]?)", value.upper().removesuffix("B"))
    if found is None:
        raise ConfigError(f"{name} is a whole number such as 1000, 20M or 1G, or none, not {value!r}")
    return int(found[1]) * _UNITS[found[2]]
