"""What callers may have mistaken: arguments of another type are refused by name, before anything is done. Pure."""

from __future__ import annotations

from typing import Final

from bookkeeper.errors import ConfigError, require
from bookkeeper.ids import LedgerId

LEDGER_ID_MAX: Final = (1 << 63) - 1


def ledger_number(ledger_id: object) -> LedgerId:
    """The id of a ledger. Raises ConfigError: it cannot be one."""
    fits = is_whole(ledger_id) and 0 <= ledger_id <= LEDGER_ID_MAX  # type: ignore[operator]  # it is a number
    require(fits, f"ledger_id must be a whole number from 0 to 2**63 - 1, not {ledger_id!r}")
    return LedgerId(ledger_id)  # type: ignore[arg-type]


def require_whole(name: str, value: object) -> None:
    """Check that it is a whole number. Raises ConfigError."""
    if not is_whole(value):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")


def require_bytes(name: str, value: object) -> None:
    """Check that it is bytes; it is not shown, because it may be secret. Raises ConfigError."""
    if not isinstance(value, bytes):
        raise ConfigError(f"{name} must be bytes, not {type(value).__name__}")


def require_bool(name: str, value: object) -> None:
    """Check that it is True or False. Raises ConfigError."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, not {value!r}")


def is_whole(value: object) -> bool:
    """Whether it is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)
