"""Amounts as people read them: numbers of things, bytes, and times. Pure."""

from __future__ import annotations


def counted(number: int, noun: str, one: str = "", many: str = "") -> str:
    """``1 ledger``, ``2 ledgers``, ``2 entries``, ``2 batches``, ``2 days``.

    ``one``, ``many``: the verb that follows, for a single thing and for others: ``1 ledger is``, ``0 ledgers are``.
    """
    if number == 1:
        return f"1 {noun} {one}" if one else f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        things = f"{noun[:-1]}ies"
    else:
        things = f"{noun}es" if noun.endswith(("ch", "s", "sh", "x")) else f"{noun}s"
    return f"{number} {things} {many}" if many else f"{number} {things}"


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


def state_in_words(state: str) -> str:
    """The name of a ledger's state for people: ``in recovery``."""
    return state.lower().replace("_", " ")
