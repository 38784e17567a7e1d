"""The live picture: what was appended, counted and committed, and what runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bookkeeper.amounts import counted
from examples.demo_kit.view import DemoPicture, DemoView


@dataclass(slots=True)
class PipelinePicture(DemoPicture):
    """All that is shown of the pipeline."""

    processes: dict[str, str] = field(default_factory=dict)
    """The state of each driver, feeder, gateway and bookie, in a word or two."""
    flights: int = 0
    """Appended to the first stream, and durable."""
    flights_in_all: int = 0
    counted: int = 0
    """Rows of the batches that drivers have told of."""
    planned: int = -1
    committed: int = -1
    trigger_ms: int = 0
    state_rows: int = 0
    segments: dict[str, int] = field(default_factory=dict)


class PipelineView(DemoView[PipelinePicture]):
    """Shows a :class:`PipelinePicture` until it is left."""

    title = "pipeline"

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        states = ", ".join(f"{name} {state}" for name, state in sorted(p.processes.items()))
        segments = ", ".join(f"{name} {counted(count, 'segment')}" for name, count in sorted(p.segments.items()))
        return (
            f"{p.flights} of {p.flights_in_all} flights appended; batch {p.committed} committed, "
            f"{p.state_rows} groups in Spark's state; {segments}; {states}"
        )

    def rows(self) -> list[RenderableType]:
        p = self.picture
        table = Table.grid(padding=(0, 3))
        done = p.flights / p.flights_in_all if p.flights_in_all else 0.0
        table.add_row("flights", f"{p.flights:,} of {p.flights_in_all:,} appended ({done:.0%})")
        table.add_row("batches", f"planned {p.planned}, committed {p.committed}; the last took {p.trigger_ms} ms")
        table.add_row("state", f"{p.state_rows:,} groups")
        for name, segments in sorted(p.segments.items()):
            table.add_row(name, counted(segments, "segment"))
        styles = {"killed": "red", "lost": "red"}
        states = Text()
        for name, state in sorted(p.processes.items()):
            states.append(f"{name}: {state}  ", style=styles.get(state, "dim"))
        return [table, states]
