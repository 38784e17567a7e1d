"""The live picture: who owns the streams, what was appended, and what the readers have read."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bookkeeper.amounts import counted
from examples.demo_kit.view import DemoPicture, DemoView
from examples.demo_stream.readers import ReadCheck


@dataclass(slots=True)
class StreamPicture(DemoPicture):
    """All that is shown of streams."""

    processes: dict[str, str] = field(default_factory=dict)
    """The state of each owner, gateway and bookie, in a word or two."""
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    segments: dict[str, int] = field(default_factory=dict)
    readers: list[ReadCheck] = field(default_factory=list)


class StreamView(DemoView[StreamPicture]):
    """Shows a :class:`StreamPicture` until it is left."""

    title = "streams"

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        segments = ", ".join(f"{name} {counted(count, 'segment')}" for name, count in sorted(p.segments.items()))
        readers = ", ".join(f"{check.name} {check.read}" for check in p.readers)
        states = ", ".join(f"{name} {state}" for name, state in sorted(p.processes.items()))
        return (
            f"{sum(p.acknowledged.values())} appended, {p.refused} refused as duplicates; read: {readers}; {segments}; "
            f"{states}"
        )

    def rows(self) -> list[RenderableType]:
        p = self.picture
        table = Table.grid(padding=(0, 3))
        for producer, count in sorted(p.acknowledged.items()):
            table.add_row(producer, f"{count:,} appended")
        table.add_row("duplicates", f"{p.refused:,} refused")
        for name, segments in sorted(p.segments.items()):
            table.add_row(name, counted(segments, "segment"))
        readers = Table.grid(padding=(0, 3))
        for check in p.readers:
            wrong = f"{check.doubled} twice, {check.missing} missing, {len(check.gaps)} gaps"
            style = "" if wrong.startswith("0 twice, 0 missing, 0") else "white on red"
            readers.add_row(check.name, f"{check.read:,} read", Text(wrong, style=style))
        states = Text("  ".join(f"{name}: {state}" for name, state in sorted(p.processes.items())), style="dim")
        return [table, readers, states]
