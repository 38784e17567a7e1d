"""Which tests a change can break: those whose modules import what was changed, over any number of steps."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path

import grimp

from tests.suite.selection import PACKAGES, ROOT

ARCHITECTURE = "tests/architecture"
"""Tests that read the tree as text: whatever changes, they are concerned."""


def changed_files() -> list[str]:
    """What differs from the last commit, new files too, from the root of the tree.

    Raises:
        RuntimeError: git cannot say.
    """
    done = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=all", "-z"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"git does not say what was changed: {done.stderr.strip()}")
    return [row[3:] for row in done.stdout.split("\0") if len(row) > 3 and row[2] == " "]


class Imports:
    """The imports of the whole tree."""

    def __init__(self) -> None:
        self._graph = grimp.build_graph(*PACKAGES, cache_dir=str(ROOT / ".import_linter_cache"))

    def tests_above(self, files: Iterable[str]) -> set[str]:
        """The modules of tests that import one of these files, directly or not, and those among them."""
        found: set[str] = set()
        for file in files:
            module = _module(file)
            if module is None or module not in self._graph.modules:
                continue
            above = {module, *self._graph.find_downstream_modules(module)}
            found |= {path for one in above if (path := _path(one)) is not None}
        return found

    def tests_that_import(self, files: Collection[str], below: str) -> set[str]:
        """The modules of tests below a directory that import one of these files themselves."""
        modules = {module for file in files if (module := _module(file)) in self._graph.modules}
        found: set[str] = set()
        for module in modules:
            direct = self._graph.find_modules_that_directly_import(module)
            found |= {path for one in direct if (path := _path(one)) is not None and path.startswith(below)}
        return found


def _module(file: str) -> str | None:
    path = Path(file)
    if path.suffix != ".py" or path.parts[0] not in PACKAGES:
        return None
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _path(module: str) -> str | None:
    """The file of a module of tests; None for other modules."""
    if not module.startswith("tests.") or not module.rpartition(".")[2].startswith("test_"):
        return None
    return module.replace(".", "/") + ".py"
