"""What earlier runs have found, so that a run may plant only what was not noticed yet.

An outcome counts as long as the mutated module is the same: another source, another bug.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.mutants.mutation import Mutation
from tests.mutants.session import Outcome


class Record:
    """A file with one outcome a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sources: dict[Path, str] = {}
        self._noticed: dict[str, tuple[str, int, float]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                name, killed_by, tests, seconds = json.loads(line)
                self._noticed[name] = killed_by, tests, seconds

    def noticed(self, mutation: Mutation) -> Outcome | None:
        """What an earlier run says of it, if a test noticed it then."""
        killed_by, tests, seconds = self._noticed.get(self._name(mutation), ("", 0, 0.0))
        return Outcome(mutation, killed_by, tests, seconds) if killed_by else None

    def add(self, outcome: Outcome) -> None:
        """Keep it, also if this run does not come to its end."""
        with self._path.open("a") as file:
            name = self._name(outcome.mutation)
            file.write(json.dumps([name, outcome.killed_by, outcome.tests, round(outcome.seconds, 1)]) + "\n")

    def _name(self, mutation: Mutation) -> str:
        source = self._sources.get(mutation.path)
        if source is None:
            source = self._sources[mutation.path] = hashlib.sha256(mutation.path.read_bytes()).hexdigest()
        return f"{source} {mutation.index} {mutation.kind}"
