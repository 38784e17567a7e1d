"""Amounts as people write and read them: bytes, and times."""

from __future__ import annotations

import click

from bookkeeper.admin.shared.options import counted

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def byte_count(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """``4096``, ``20M``: bytes, with K, M or G for powers of 1024."""
    if value is None:
        return None
    text = value.upper().removesuffix("B")
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("K", "M", "G") else (text, "")
    if not number.isdecimal() or int(number) == 0:
        raise click.BadParameter(f"{value!r} is not a number of bytes: expected for example 1000000, 500K, 20M or 1G")
    return int(number) * _UNITS[unit]


def size_in_words(size: int | None) -> str:
    """``512 B``, ``1.5 MiB``; nothing where it is not known."""
    if size is None:
        return ""
    value, unit = float(size), 0
    while value >= 1024 and unit < 5:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[unit]}" if unit else f"{size} B"


def time_in_words(seconds: float) -> str:
    """``40 s``, ``5 min``, ``3 h``, ``7 days``: the two largest units at most, ``1 day 2 h``."""
    left = int(seconds)
    parts = []
    for name, size in (("day", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, size)
        if number:
            parts.append(counted(number, name) if name == "day" else f"{number} {name}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"
