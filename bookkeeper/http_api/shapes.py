"""Ledgers, bookies and settings in the JSON of Apache's HTTP server. Pure.

What Apache's server shows and we do not is a ledger's password: its place is empty.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta.records import ledger_format

_UNITS: Final = ("", "KB", "MB", "GB", "TB")

SHOWN_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "storage": ("*",),
    "auth": ("provider",),
    "tls": ("mode",),
    "audit": ("to",),
    "http_api": ("listen", "actions"),
}
"""Of settings that are tables: those that are shown. All others could name or hold a secret."""


def ledger_document(ledger_id: LedgerId, found: LedgerMetadata) -> dict[str, Any]:
    """A ledger's metadata as Apache's ``LedgerMetadata`` is written by Jackson, without its password."""
    ensembles = {str(each.first_entry): [{"id": str(name)} for name in each.ensemble] for each in found.fragments}
    return {
        "ledgerId": int(ledger_id),
        "metadataFormatVersion": found.format_version,
        "ensembleSize": found.spec.ensemble_size,
        "writeQuorumSize": found.spec.write_quorum,
        "ackQuorumSize": found.spec.ack_quorum,
        "state": found.state.name,
        "length": found.length,
        "lastEntryId": int(found.last_entry),
        "ctime": -1 if found.ctime_ms is None else found.ctime_ms,
        "digestType": None if found.digest_type is None else found.digest_type.name,
        "password": "",
        "customMetadata": {key: base64.b64encode(value).decode() for key, value in found.custom.items()},
        "closed": found.is_closed,
        "allEnsembles": ensembles,
        "ctoken": found.creator_token,
    }


def ledger_text(found: LedgerMetadata) -> str:
    """A ledger's metadata as they are stored, read as text, without the password."""
    bare = found if found.password is None else dataclasses.replace(found, password=b"")
    return ledger_format.encode(bare).decode("utf-8", "replace")


def entry_text(payload: bytes) -> str:
    """An entry as text, with a mark for each byte that is no ASCII."""
    return payload.decode("ascii", "replace")


def readable(size: int) -> str:
    """A number of bytes in brackets: ``(60.201GB)``; nothing below 1000."""
    scaled, unit = size * 1000, 0
    while scaled >= 1_000_000 and unit < len(_UNITS) - 1:
        scaled //= 1000
        unit += 1
    if not unit:
        return ""
    digits = f"{scaled // 1000}.{scaled % 1000:03}".rstrip("0").rstrip(".")
    return f"({digits}{_UNITS[unit]})"


def space_documents(spaces: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """What bookies say of their disks, by id: (free, total) bytes; with the sum at the end."""
    found = {name: f": {_space(free, total)}," for name, (free, total) in spaces.items()}
    free, total = (sum(each[at] for each in spaces.values()) for at in (0, 1))
    return {**found, "ClusterInfo: ": _space(free, total)}


def settings_document(config: Any) -> dict[str, str]:
    """The settings of a process by name, as text, without those that could hold a secret."""
    found: dict[str, str] = {}
    for each in dataclasses.fields(config):
        value = getattr(config, each.name)
        if not dataclasses.is_dataclass(value):
            if isinstance(value, str | int | float | bool | tuple):
                found[each.name] = _text(value)
            continue
        shown = SHOWN_TABLES.get(each.name, ())
        for inner in dataclasses.fields(value):
            if (inner.name in shown or "*" in shown) and (held := getattr(value, inner.name)) is not None:
                found[f"{each.name}.{inner.name}"] = _text(held)
    return found


def _space(free: int, total: int) -> str:
    return f"{{Free: {free}{readable(free)}, Total: {total}{readable(total)}}}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
