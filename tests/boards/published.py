"""What the boards that StreamNative publishes for BookKeeper ask for: names, labels, and whether a rate is asked.

``published.tsv`` has these facts of the boards of streamnative/apache-pulsar-grafana-dashboard (the commit of
2026-08-11: ``dashboards``, ``dashboards.kubernetes`` and ``dashboards.privatecloud``, bookkeeper.json and
recovery.json), and nothing else of them.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bookkeeper.autorecovery.apache_names import NAMES as REPLICATION
from bookkeeper.bookie.health.apache_names import ABSENT, NAMES

FILE: Final = Path(__file__).with_name("published.tsv")
OF_ONE_PATH: Final = re.compile(r"bookie_ledger_dir_\w+_usage")
"""Names that hold a path; ours answers where the ledger directory has it."""


@dataclass(frozen=True, slots=True)
class PublishedQuery:
    """One metric as a board asks for it."""

    metric: str
    labels: str
    is_rate: bool
    boards: tuple[str, ...]

    @property
    def query(self) -> str:
        """A query of our own that asks the same."""
        if OF_ONE_PATH.fullmatch(self.metric):
            return f'{{__name__=~"{OF_ONE_PATH.pattern}"}}'.replace("\\", "\\\\")
        selected = f"{self.metric}{{{self.labels}}}"
        return f"rate({selected}[10s])" if self.is_rate else selected

    @property
    def missing(self) -> str | None:
        """Why bookies of ours do not have it; None: they do."""
        base = re.sub(r"_(count|sum)$", "", self.metric)
        known = {**NAMES, **REPLICATION}
        if self.metric in known or base in known or OF_ONE_PATH.fullmatch(self.metric):
            return None
        return ABSENT[self.metric]


def published() -> list[PublishedQuery]:
    """All of them."""
    with FILE.open() as file:
        return [
            PublishedQuery(row["metric"], row["labels"], row["asked"] == "rate", tuple(row["boards"].split()))
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
