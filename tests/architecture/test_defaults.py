"""One home for each default: what may be set is a field of a ``config.py``, and no other module repeats its number.

A repetition is a number in the code that stands for a setting under the setting's own name: the default of a parameter,
of a field, of an option of ``bk``, or a constant. ``default_of(SomeConfig, "field")`` takes it from its home instead.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source import parsed, walked

ROOT = Path(__file__).parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal")

OTHERS = {
    ("bookkeeper/net/tls.py", "handshakes_max"): "a bookie's TLS, a setting of its own ([tls] in its file)",
    ("journal_manager/read/tailer.py", "poll_s"): "how often the tail of a journal is looked at",
    ("bookkeeper/testing/world/network.py", "slow_s"): "how slow the simulated network is",
    ("bookkeeper/testing/world/world.py", "slow_s"): "how slow a simulated thread is",
}
"""The same name for something else."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.stem.endswith("_pb2"):
                yield str(path.relative_to(ROOT)), parsed(path)


def is_number(node: ast.expr | None) -> bool:
    """A number that is written out, also as ``64 << 20`` or ``24 * 3600.0``."""
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and (is_number(node.right) or isinstance(node.right, ast.Name))
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def fields_of(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The fields of classes, with their defaults."""
    for node in walked(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                    yield line.target.id, line.value


def parameters_of(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    for node in walked(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            places = [*node.args.posonlyargs, *node.args.args]
            for place, default in zip(reversed(places), reversed(node.args.defaults), strict=False):
                yield place.arg, default
            for place, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                yield place.arg, value


def options_of(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Options of commands: calls whose first words are ``--the-option``, and the numbers among their arguments."""
    for node in walked(tree):
        if isinstance(node, ast.Call):
            words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            if words and words[0].startswith("--"):
                name = words[0].strip("-").replace("-", "_")
                for value in [*node.args, *(word.value for word in node.keywords if word.arg == "default")]:
                    yield name, value


def constants_of(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id.lower(), node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id.lower(), node.value


@cache
def homes() -> dict[str, list[tuple[str, ast.expr]]]:
    """Setting -> the ``config.py`` that has it, and its default there."""
    found: dict[str, list[tuple[str, ast.expr]]] = defaultdict(list)
    for path, tree in modules():
        if path.endswith("/config.py"):
            for name, value in fields_of(tree):
                if is_number(value) or isinstance(value, ast.Call | ast.Name | ast.Attribute):
                    found[name].append((path, value))
    return found


def number(node: ast.expr) -> float | None:
    """What a number that is written out comes to; names in it are those of sizes."""
    if not is_number(node):
        return None
    return float(eval(ast.unparse(node), {"KIB": 1 << 10, "MIB": 1 << 20}))


def test_the_rooms_have_their_settings() -> None:
    rooms = {place for places in homes().values() for place, _ in places}
    assert {
        "bookkeeper/bookie/config.py",
        "bookkeeper/client/config.py",
        "bookkeeper/gateways/config.py",
        "bookkeeper/ledger/config.py",
        "bookkeeper/replication/config.py",
        "bookkeeper/storage/base/config.py",
        "spark_wal/webhdfs/config.py",
    } <= rooms


def test_no_number_of_a_setting_is_repeated() -> None:
    """A zero is none: it stands for no limit. A constant may have the name of a setting if it is another number."""
    settings = homes()
    repeated = []
    for path, tree in modules():
        for kind in (fields_of, parameters_of, options_of, constants_of):
            for name, value in kind(tree):
                if path.endswith("/config.py") or (path, name) in OTHERS or name not in settings or value is None:
                    continue
                told, known = number(value), [number(default) for _, default in settings[name]]
                if told and (kind is not constants_of or told in known):
                    repeated.append(f"{path}: {name} = {ast.unparse(value)}, whose home is {settings[name][0][0]}")
    assert repeated == []


def test_a_client_repeats_no_limit_of_the_machines() -> None:
    """Client and machine have names of their own for the same limit: one takes it from the other."""
    client = ast.parse((ROOT / "bookkeeper/client/config.py").read_text())
    taken = {
        word.value
        for node in ast.walk(client)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "default_of"
        for word in node.args
        if isinstance(word, ast.Constant)
    }
    given = {
        word.arg
        for node in ast.walk(client)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("WriterConfig", "RecoveryConfig", "ReadConfig")
        for word in node.keywords
    }
    assert given - taken == {"deferred_sync"}


def test_the_exceptions_are_still_there() -> None:
    trees = dict(modules())
    for path, name in OTHERS:
        known = {found for kind in (fields_of, parameters_of) for found, _ in kind(trees[path])}
        assert name in known, f"{path} has no {name}: take it off the list"


def test_a_repetition_is_seen() -> None:
    """In every place where one may stand."""
    told = ast.parse(
        "class C:\n    add_timeout_ms: int = 1 << 4\n"
        "def f(add_timeout_ms=3, *, read_window=-7): ...\n"
        "option('--add-timeout-ms', default=5)\n"
        "ADD_TIMEOUT_MS: Final = 9\n"
    )
    kinds = (fields_of, parameters_of, options_of, constants_of)
    assert [[name for name, value in kind(told) if is_number(value)] for kind in kinds] == [
        ["add_timeout_ms"],
        ["add_timeout_ms", "read_window"],
        ["add_timeout_ms"],
        ["add_timeout_ms"],
    ]
