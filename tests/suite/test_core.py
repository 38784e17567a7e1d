"""The core proves each promise once, and its lists name what exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.source import parsed
from tests.suite.costs import FILE, KINDS, read
from tests.suite.selection import OUTSIDE, ROOT, Selection, module_of, selection


def marks(nodes: list[ast.expr]) -> set[str]:
    """The names of pytest's marks in some expressions."""
    found = set()
    for node in nodes:
        for part in ast.walk(node):
            match part:
                case ast.Attribute(ast.Attribute(ast.Name("pytest"), "mark"), name):
                    found.add(name)
    return found


@cache
def functions(module: Path) -> dict[str, set[str]]:
    """The tests of a module, those of its classes as ``Class::test`` -> their marks, the module's too."""
    found: dict[str, set[str]] = {}
    tree = parsed(module)
    shared = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets):
            shared = marks([node.value])
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    found[f"{node.name}::{inner.name}"] = shared | marks([*node.decorator_list, *inner.decorator_list])
            found[node.name] = shared | marks(list(node.decorator_list))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = shared | marks(list(node.decorator_list))
    return found


def has_core_test(lists: Selection, module: str, name: str, found: set[str]) -> bool:
    """Whether a test, or one of its parameters, is run each time."""
    test = f"{module}::{name}"
    if any(pattern.startswith(test) for pattern in lists.core):
        return True
    return lists.is_core(test, outside=bool(found & set(OUTSIDE)))


def test_every_rule_has_a_test_in_the_core() -> None:
    """Else a run could be green that looked at none of a promise's tests."""
    lists = selection()
    every = {
        path: functions(ROOT / path) for path in {_module(test) for some in rules.guarded().values() for test in some}
    }
    alone = {}
    for rule, tests in rules.guarded().items():
        if not any(_is_run(lists, every, test) for test in tests):
            alone[rule] = tests[:3]
    assert alone == {}, "give one of these tests to the core (core.toml), or mark a quick one with the rule"


def _module(test: str) -> str:
    path = test.partition("::")[0]
    return path if path.startswith("journal_manager/testing/") else f"tests/{path}"


def _is_run(lists: Selection, every: dict[str, dict[str, set[str]]], test: str) -> bool:
    module, name = _module(test), test.partition("::")[2]
    if not Path(module).name.startswith("test_"):
        return True  # a contract: each implementation's module runs it
    if name == Path(module).stem:  # the mark stands for the whole module
        return any(has_core_test(lists, module, one, found) for one, found in every[module].items())
    return any(
        has_core_test(lists, module, one, found)
        for one, found in every[module].items()
        if one == name or one.endswith(f"::{name}")
    )


def test_the_lists_name_tests_that_exist() -> None:
    lists = selection()
    missing = [
        f"{module}::{name}"
        for some in (lists.drawn, lists.heavy)
        for module, names in some.items()
        for name in names
        if not _exists(module, name)
    ]
    missing += [
        pattern
        for pattern in lists.core
        if not pattern.endswith("*") and "::" in pattern and not _exists(*_parts(pattern))
    ]
    missing += [
        module_of(pattern.rstrip("*"))
        for pattern in [*lists.core, *lists.divided]
        if not (ROOT / module_of(pattern.rstrip("*"))).exists()
    ]
    assert missing == [], "core.toml"


def _exists(module: str, name: str) -> bool:
    """A test that a class inherits, from a contract, is taken for one that exists."""
    if name in _names(module):
        return True
    inside, _, _ = name.partition("::")
    return inside != name and (ROOT / module).exists() and inside in (ROOT / module).read_text()


@cache
def _names(module: str) -> set[str]:
    path = ROOT / module
    if not path.exists():
        return set()
    assigned = {
        target.id
        for node in parsed(path).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return set(functions(path)) | assigned


def _parts(pattern: str) -> tuple[str, str]:
    module, _, name = pattern.partition("::")
    return module, name.partition("[")[0]


def test_the_table_of_costs_names_modules_that_exist() -> None:
    costs = read(FILE.read_text())
    assert [unit for kind in KINDS for unit in costs.of[kind] if not (ROOT / module_of(unit)).exists()] == []


@pytest.mark.parametrize(
    ("test", "fits"),
    [
        ("tests/test_a.py::test_x", True),
        ("tests/test_a.py::test_x[1]", True),
        ("tests/test_a.py::test_x[1[2]::3]", True),
        ("tests/test_a.py::test_xy", False),
        ("tests/b/test_c.py::test_z", True),
        ("tests/bc/test_c.py::test_z", False),
    ],
)
def test_a_pattern_stands_for_a_test_with_its_parameters_or_for_what_begins_so(test: str, fits: bool) -> None:
    assert Selection({"tests/test_a.py::test_x": "", "tests/b/*": ""}, {}, {}).names(test) == fits


def test_a_test_whose_parameters_were_changed_is_named() -> None:
    """Cause: tests that each run should have taken were taken by none, since their parameters had other names."""
    lists = Selection(
        {
            "tests/test_a.py::test_x[1]": "",
            "tests/test_a.py::test_x[2]": "",
            "tests/test_b.py::y[1]": "",
            "tests/test_a.py::z[1-native]": "",
        },
        {},
        {},
    )
    there = ["tests/test_a.py::test_x[2]", "tests/test_a.py::test_x[3]"]
    assert lists.gone(there) == ["tests/test_a.py::test_x[1]"]
