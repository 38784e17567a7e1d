"""The live picture: what is done to the cluster, how it goes, and how every bookie is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bookkeeper.amounts import counted
from examples.demo_kit.view import DemoPicture, DemoView

_STYLES: Final = {"writable": "black on green", "read-only": "black on yellow"}


@dataclass(slots=True)
class HealPicture(DemoPicture):
    """All that is shown of a cluster that heals."""

    bookies: dict[str, str] = field(default_factory=dict)
    """The state of each bookie, in a word or two."""
    stored: dict[str, int] = field(default_factory=dict)
    """Bytes on each bookie's disk."""
    ledgers: int = 0
    acknowledged: int = 0
    under_replicated: int = 0
    stuck: dict[int, str] = field(default_factory=dict)
    repaired: int = 0
    copied_bytes: int = 0
    copied_entries: int = 0
    auditing: str = "not running"
    working: tuple[str, ...] = ()

    @property
    def stored_bytes(self) -> int:
        return sum(self.stored.values())


class HealView(DemoView[HealPicture]):
    """Shows a :class:`HealPicture` until it is left."""

    title = "healing"

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        bookies = ", ".join(f"{name} {state}" for name, state in sorted(p.bookies.items()))
        return (
            f"{counted(p.ledgers, 'ledger')}, {counted(p.acknowledged, 'entry')} acknowledged, "
            f"{p.under_replicated} under-replicated, "
            f"{p.copied_bytes / 1e6:.1f} MB copied, {p.stored_bytes / 1e6:.0f} MB on disks; {bookies}"
        )

    def rows(self) -> list[RenderableType]:
        p = self.picture
        table = Table.grid(padding=(0, 3))
        table.add_row("ledgers", f"{p.ledgers}", "entries acknowledged", f"{p.acknowledged:,}")
        table.add_row("under-replicated", f"{p.under_replicated}", "stuck", f"{len(p.stuck)}")
        table.add_row(
            "repaired",
            f"{p.repaired}",
            "copied",
            f"{counted(p.copied_entries, 'entry')}, {p.copied_bytes / 1e6:.1f} MB",
        )
        disks = Table.grid(padding=(0, 3))
        for name, state in sorted(p.bookies.items()):
            disks.add_row(
                name,
                Text(f" {state} ", style=_STYLES.get(state, "white on red")),
                f"{p.stored.get(name, 0) / 1e6:.1f} MB",
            )
        doing = Text("\n".join([f"auditor: {p.auditing}", *(f"repairs {line}" for line in p.working)]), style="dim")
        return [table, disks, doing]
