"""The live picture: what is done to the name node, and how its replicas are.

On a terminal a table that is drawn again four times a second; elsewhere one line for everything that happens, and one
every few seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from examples.story_view import StoryPicture, StoryView

_STYLES: Final = {"active": "black on green", "standby": "black on cyan", "becoming active": "black on yellow"}


@dataclass(slots=True)
class NameNodePicture(StoryPicture):
    """All that is shown. Whoever learns something writes it here; the view only reads."""

    replicas: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> what the replica says of itself; ``role`` alone if it says nothing."""
    clients: int = 0
    acknowledged: int = 0
    repeated: int = 0
    audited: int = 0
    """The last edit that the auditor has read."""
    checkpoints: tuple[int, ...] = ()
    segments: int = 0


class NameNodeView(StoryView[NameNodePicture]):
    """Shows a :class:`NameNodePicture` until it is left."""

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        replicas = ", ".join(
            f"{name} {said['role']}" + (f" at edit {said['txid']}" if "txid" in said else "")
            for name, said in sorted(p.replicas.items())
        )
        return (
            f"{p.acknowledged} requests acknowledged, {p.repeated} asked again, {p.audited} edits audited, "
            f"{len(p.checkpoints)} checkpoints, {p.segments} segments; {replicas}"
        )

    def draw(self) -> Group:
        """The picture as a table."""
        p = self.picture
        table = Table.grid(padding=(0, 3))
        table.add_row("clients", f"{p.clients}", "acknowledged", f"{p.acknowledged:,}", "asked again", f"{p.repeated}")
        kept = ", ".join(f"{at}" for at in p.checkpoints) or "none"
        table.add_row("edits audited", f"{p.audited:,}", "segments", f"{p.segments}", "checkpoints", kept)
        replicas = Table.grid(padding=(0, 3))
        for name, said in sorted(p.replicas.items()):
            role = Text(f" {said['role']} ", style=_STYLES.get(said["role"], "white on red"))
            facts = (
                f"edit {said['txid']:,}, {said['answered']:,} answered, {said['repeated']} known already, "
                f"{said['offered']} checkpoints offered, {said['adopted']} adopted, fenced {said['fenced']} times"
                if "txid" in said
                else ""
            )
            replicas.add_row(name, role, facts)
        return Group(Panel(Group(table, replicas), title=f"name node, {p.seconds:.0f} s"), self.story())
