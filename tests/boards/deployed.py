"""What stands in ``deploy/grafana`` and ``deploy/prometheus``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
BOARDS: Final = ROOT / "deploy/grafana"
PROMETHEUS: Final = ROOT / "deploy/prometheus"


def read_yaml(path: Path) -> Any:
    """A file of YAML, or a skip where the library is not installed; what ``make install`` makes has it."""
    return pytest.importorskip("yaml").safe_load(path.read_text())


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """One query of a board."""

    board: str
    panel: str
    query: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """One rule that alarms."""

    name: str
    query: str
    after: str
    severity: str
    section: str
    """Of the runbook: its anchor."""
    summary: str


def boards() -> dict[str, dict[str, Any]]:
    """File name -> board."""
    return {path.name: json.loads(path.read_text()) for path in sorted(BOARDS.glob("*.json"))}


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The panels that show something: those that are no headings."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def queries() -> list[PanelQuery]:
    """Every query of every board."""
    return [
        PanelQuery(name, panel["title"], target["expr"])
        for name, board in boards().items()
        for panel in panels(board)
        for target in panel["targets"]
    ]


def alarms() -> list[Alarm]:
    """Every alarm of every file of rules."""
    found = []
    for path in sorted(PROMETHEUS.glob("alerts*.yml")):
        for group in read_yaml(path)["groups"]:
            for rule in group["rules"]:
                notes = rule["annotations"]
                page, _, section = notes["runbook"].partition("#")
                assert page == "docs/runbook.md", f"{rule['alert']} names no section of the runbook"
                found.append(
                    Alarm(
                        rule["alert"],
                        rule["expr"],
                        rule.get("for", "at once"),
                        rule["labels"]["severity"],
                        section,
                        notes["summary"],
                    )
                )
    return found
