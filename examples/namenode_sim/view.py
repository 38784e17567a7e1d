"""The live picture: what is done to the name node, and how its replicas are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bookkeeper.amounts import counted
from examples.demo_kit.view import DemoPicture, DemoView

_STYLES: Final = {"active": "black on green", "standby": "black on cyan", "becoming active": "black on yellow"}


@dataclass(slots=True)
class NameNodePicture(DemoPicture):
    """All that is shown of a name node."""

    replicas: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> what the replica says of itself; ``role`` alone if it says nothing."""
    clients: int = 0
    acknowledged: int = 0
    repeated: int = 0
    audited: int = 0
    """The last edit that the auditor has read."""
    checkpoints: tuple[int, ...] = ()
    segments: int = 0


class NameNodeView(DemoView[NameNodePicture]):
    """Shows a :class:`NameNodePicture` until it is left."""

    title = "name node"
    shown = 16

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        replicas = ", ".join(
            f"{name} {said['role']}" + (f" at edit {said['txid']}" if "txid" in said else "")
            for name, said in sorted(p.replicas.items())
        )
        return (
            f"{p.acknowledged} requests acknowledged, {p.repeated} asked again, {counted(p.audited, 'edit')} audited, "
            f"{counted(len(p.checkpoints), 'checkpoint')}, {counted(p.segments, 'segment')}; {replicas}"
        )

    def rows(self) -> list[RenderableType]:
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
                f"{counted(said['offered'], 'checkpoint')} offered, {said['adopted']} adopted, "
                f"fenced {counted(said['fenced'], 'time')}"
                if "txid" in said
                else ""
            )
            replicas.add_row(name, role, facts)
        return [table, replicas]
