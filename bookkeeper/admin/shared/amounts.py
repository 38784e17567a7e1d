"""Numbers of bytes as people write them."""

from __future__ import annotations

import click

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
