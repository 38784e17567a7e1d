"""Pictures of clusters that are not there, for pages of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from bookkeeper.access import Mode
from bookkeeper.autorecovery.cluster_status import BookiesStatus, BookieStatus
from bookkeeper.autorecovery.status import AutorecoveryStatus
from bookkeeper.console.blocks import PageAddress, ShownFacts, ShownNote, ShownTable
from bookkeeper.console.ledger_list import LedgerList, ledger_row
from bookkeeper.console.picture import BookiesPicture, DeletedRow, LedgersPicture
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.view import PageView, ViewRequest
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.meta.records.autorecovery import ClusterCheck

T = TypeVar("T")

NOW_MS = 1_700_000_000_000
SPEC = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=2)
GIB = 1 << 30


def asked(path: str = "/", *actions: str, **params: str) -> ViewRequest:
    return ViewRequest(PageAddress(path, params), NOW_MS, 5.0, lambda action: action in actions)


def kept(value: T, problem: str = "") -> CachedValue[T]:
    return CachedValue(value, NOW_MS - 3000, 0.02, problem)


def bookies(*found: BookieStatus, places: dict[str, str] | None = None, **autorecovery: Any) -> BookiesPicture:
    """Default: b1 and b2 are writable, b3 is absent, and an auditor works."""
    found = found or (
        BookieStatus(BookieId("b1"), "writable", 10 * GIB, 4 * GIB, answered_s=0.002),
        BookieStatus(BookieId("b2"), "writable", 10 * GIB, GIB // 2, answered_s=0.003),
        BookieStatus(BookieId("b3"), "absent"),
    )
    status = AutorecoveryStatus(
        **{
            "enabled": True,
            "auditor": "host:1",
            "delay_s": 30,
            "checks": dict.fromkeys(ClusterCheck),
            "marked": [],
            **autorecovery,
        }
    )
    racks = {each.bookie: (places or {}).get(each.bookie, "/default-rack") for each in found}
    return BookiesPicture(BookiesStatus(tuple(found)), racks, status, Mode.OFF, ())


def closed(*names: str) -> LedgerMetadata:
    return LedgerMetadata.create(SPEC, [BookieId(name) for name in names or ("b1", "b2")]).close(9, 100)


def ledgers(
    *found: LedgerMetadata, up: Sequence[str] = ("b1", "b2"), deleted: Sequence[DeletedRow] = ()
) -> LedgersPicture:
    listed = LedgerList()
    for number, each in enumerate(found):
        listed.add(ledger_row(LedgerId(number), each, frozenset(map(BookieId, up)), {}))
    return LedgersPicture(listed.seal(()), (), tuple(deleted))


def texts(view: PageView) -> str:
    """All that a page says."""
    said = [view.title, view.summary, view.problem, view.age]
    for block in view.blocks:
        match block:
            case ShownNote(text):
                said.append(text)
            case ShownFacts(title, rows):
                said += [title, *(f"{name}: {cell.text}" for name, cell in rows)]
            case ShownTable(title, columns, lines, empty):
                said += [title, " ".join(columns), *(" | ".join(cell.text for cell in line) for line in lines)]
                said += [] if lines else [empty]
    return "\n".join(said)
