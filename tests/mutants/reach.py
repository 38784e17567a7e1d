"""Which tests reach which lines, and how long each takes: what decides which tests a planted bug has to pass."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import coverage

from tests.mutants.mutation import Mutation


@dataclass(slots=True)
class Reach:
    """What a run of all tests without any bug has shown."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Test -> how long it took."""
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """File -> line -> the tests that reached it."""

    def tests_for(self, mutation: Mutation) -> list[str]:
        """The tests that reach the mutated lines: the nearest first (same package), then the quickest."""
        lines = self.lines.get(str(mutation.path), {})
        mutated = range(mutation.line, mutation.end_line + 1)
        found = {test for line in mutated for test in lines.get(line, ()) if test in self.seconds}
        package = f"/{mutation.path.parent.name}/"

        def order(test: str) -> tuple[bool, float, str]:
            return package not in test and self.seconds[test] > 1, self.seconds[test], test

        return sorted(found, key=order)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"seconds": self.seconds, "lines": self.lines}))

    @classmethod
    def read(cls, path: Path) -> Reach:
        found = json.loads(path.read_text())
        lines = {file: {int(line): tests for line, tests in by.items()} for file, by in found["lines"].items()}
        return cls(found["seconds"], lines)

    @classmethod
    def together(cls, parts: Iterable[Reach]) -> Reach:
        """What several processes have seen of one suite."""
        whole = cls()
        for part in parts:
            whole.seconds |= part.seconds
            for file, by in part.lines.items():
                into = whole.lines.setdefault(file, {})
                for line, tests in by.items():
                    into.setdefault(line, []).extend(tests)
        return whole


def observe(tests: Sequence[str], run: Callable[[str], bool], files: Iterable[Path]) -> Reach:
    """Run the tests one after the other and see which lines of ``files`` they reach; a test that fails is left out."""
    seen = coverage.Coverage(data_file=None, include=[str(path) for path in files], config_file=False)
    reach = Reach()
    seen.start()
    try:
        for test in tests:
            seen.switch_context(test)
            begin = time.perf_counter()
            if run(test):
                reach.seconds[test] = round(time.perf_counter() - begin, 3)
    finally:
        seen.stop()
    data = seen.get_data()
    for file in data.measured_files():
        by_line = data.contexts_by_lineno(file)
        reach.lines[file] = {line: [name for name in names if name] for line, names in by_line.items()}
    return reach
