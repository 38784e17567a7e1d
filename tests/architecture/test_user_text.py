"""What people read: errors, log lines and help name no rule's number, no errno and no notation of Python's.

Read from the source: the strings of calls that raise, log, echo or describe an option. The rule that
``check(condition, "W4")`` carries is meant for developers: an invariant that does not hold is a bug.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.source import nodes

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal", "examples")
LOGS = frozenset(["debug", "info", "warning", "error", "exception", "critical"])
SAYS = frozenset(["echo", "secho", "print", "option", "argument", "command", "group", "require"])
KINDS = ("Error", "Exception", "Warning")
OF_THE_SYSTEM = frozenset(["OSError", "ConnectionError", "FileNotFoundError", "FileExistsError", "PermissionError"])
GROUPS = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
GROUPING = frozenset(["tuple", "list", "dict", "set", "frozenset", "sorted"])


def found_in(nodes: Iterable[ast.AST]) -> list[str]:
    """What of a module's syntax people would stumble over, as line: what."""
    found = {f"{line}: {what}" for node in nodes for line, what in _of_node(node)}
    return sorted(found)


def _of_node(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Call() if _is_read(node):
            yield from _of_call(node)
        case ast.FunctionDef():
            yield from _of_command(node)
        case ast.ExceptHandler():
            yield from _of_handler(node)


def _is_read(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(name) | ast.Attribute(_, name):
            pass
        case _:
            return False
    return _is_log(call) or name in SAYS or name.endswith(KINDS)


def _is_log(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in LOGS


def _of_call(call: ast.Call) -> Iterator[tuple[int, str]]:
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, what) for what in _of_text(node.value))
        elif isinstance(node, ast.FormattedValue) and _is_group(node.value):
            yield node.lineno, ast.unparse(node.value)
    if _is_log(call):
        yield from ((arg.lineno, ast.unparse(arg)) for arg in call.args[1:] if _is_group(arg))


def _of_text(text: str) -> Iterator[str]:
    kept = rules.kept()
    yield from (number for number in rules.NUMBER.findall(text) if number in kept and number not in rules.OTHERS)
    if "[Errno" in text:
        yield "[Errno"


def _is_group(value: ast.expr) -> bool:
    return isinstance(value, GROUPS) or (isinstance(value, ast.Call) and ast.unparse(value.func) in GROUPING)


def _of_command(node: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """The docstring of a command is its help."""
    if any(ast.unparse(d).partition("(")[0].endswith((".command", ".group")) for d in node.decorator_list):
        yield from ((node.lineno, what) for what in _of_text(ast.get_docstring(node) or ""))


def _of_handler(handler: ast.ExceptHandler) -> Iterator[tuple[int, str]]:
    """An error of the system is said by ``in_words``: by itself it begins with its number."""
    if handler.name is None or handler.type is None:
        return
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not OF_THE_SYSTEM & {ast.unparse(kind) for kind in kinds}:
        return
    for call in ast.walk(handler):
        if isinstance(call, ast.Call) and _is_read(call):
            said = [node.value for node in ast.walk(call) if isinstance(node, ast.FormattedValue)]
            said += call.args[1:] if _is_log(call) else []
            for value in said:
                if isinstance(value, ast.Name) and value.id == handler.name:
                    yield value.lineno, f"{handler.name} without in_words()"


@pytest.mark.parametrize("package", PACKAGES)
def test_what_people_read_has_no_rules_numbers_no_errno_and_no_tuples(package: str) -> None:
    paths = [path for path in sorted((ROOT / package).rglob("*.py")) if "testing" not in path.parts]
    found = {str(path.relative_to(ROOT)): found_in(nodes(path)) for path in paths}
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('raise ConfigError("X58: no")', "X58"),
        ('log.warning("%s (M10)", e)', "M10"),
        ('click.option("--a", help="how much (X31)")', "X31"),
        ('@cli.command()\ndef a():\n    """Do as W4 says."""', "W4"),
        ('log.warning("%s", sorted(bookies))', "sorted(bookies)"),
        ('click.echo(f"{(a, b)}")', "(a, b)"),
        ('raise ConfigError("[Errno 98] taken")', "[Errno"),
        ('try: ...\nexcept OSError as e:\n    log.warning("no: %s", e)', "e without in_words()"),
        ('try: ...\nexcept OSError as e:\n    raise ConfigError(f"no: {e}")', "e without in_words()"),
    ],
)
def test_each_kind_is_found(source: str, what: str) -> None:
    assert [line.partition(": ")[2] for line in found_in(ast.walk(ast.parse(source)))] == [what]


def test_what_is_plain_is_not() -> None:
    source = 'check(a, "W4", b)\nraise ConfigError("S3 needs a key")\nlog.info("%d of %s", 3, ", ".join(sorted(a)))'
    assert found_in(ast.walk(ast.parse(source))) == []
