"""What can be planted in a module: small changes of its syntax tree, one at a time.

A mutation changes the inside of one function; signatures, annotations, docstrings, log lines, messages of errors and
assertions (they guard against programmers' mistakes, as does ``zip(…, strict=True)``) stay as they are, and so do
numbers that are not added, subtracted or compared (they tune, and promise nothing).
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Final

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = Callable[[], None]
"""Applies a mutation to the tree that it was found in."""

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SILENT: Final = ("log", "_log", "logger")
"""Names of loggers: what is said is no promise."""
_DESCRIPTIVE: Final = ("__repr__", "__str__", "describe")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One planted bug."""

    path: Path
    qualname: str
    """Of the outermost function around it, as code objects name it."""
    function_line: int
    line: int
    end_line: int
    kind: str
    before: str
    after: str
    index: int
    """Among all mutations of the module."""

    @property
    def key(self) -> str:
        """The same while the mutated text and its function stay, wherever the file moves."""
        return f"{self.path.stem}.{self.qualname}: {self.before} -> {self.after}"

    @property
    def rank(self) -> str:
        """Chance that does not change from run to run."""
        return hashlib.sha256(f"{self.key} {self.kind}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Site:
    function: Function
    qualname: str
    node: ast.AST
    kind: str
    before: str
    after: str
    change: Change


def mutations(path: Path) -> list[Mutation]:
    """All that can be planted in the module at ``path``."""
    return [
        Mutation(
            path,
            site.qualname,
            min([site.function.lineno, *(decorator.lineno for decorator in site.function.decorator_list)]),
            getattr(site.node, "lineno", site.function.lineno),
            getattr(site.node, "end_lineno", site.function.lineno),
            site.kind,
            site.before,
            site.after,
            index,
        )
        for index, site in enumerate(_sites(ast.parse(path.read_text())))
    ]


def planted(mutation: Mutation) -> CodeType:
    """The code of the function around the mutation, with the bug in it.

    Raises:
        LookupError: the module has changed meanwhile.
    """
    tree = ast.parse(mutation.path.read_text())
    site = next((site for at, site in enumerate(_sites(tree)) if at == mutation.index), None)
    if site is None or site.before != mutation.before:
        raise LookupError(f"{mutation.path} has changed")
    site.change()
    module = compile(ast.fix_missing_locations(tree), str(mutation.path), "exec", dont_inherit=True)
    return next(
        code
        for code in _codes(module)
        if code.co_qualname == mutation.qualname and code.co_firstlineno == mutation.function_line
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _sites(tree: ast.Module) -> Iterator[_Site]:
    for function, qualname in _functions(tree, ""):
        if function.name not in _DESCRIPTIVE and not _is_declaration(function):
            for node, owner, name, at in _inside(function.body, function, "body"):
                for kind, before, after, change in _changes(node, owner, name, at):
                    yield _Site(function, qualname, node, kind, before, after, change)


def _functions(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[Function, str]]:
    """The outermost functions: those of the module and of its classes."""
    for child in node.body:
        if isinstance(child, Function):
            yield child, prefix + child.name
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _is_declaration(function: Function) -> bool:
    """Nothing but a docstring and ``...``."""
    return all(isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) for item in function.body)


_Hung = tuple[ast.AST, ast.AST, str, int | None]
"""A node, its owner, the owner's field that holds it, and where in that field if it is a list."""


def _inside(value: object, owner: ast.AST, name: str, at: int | None = None) -> Iterator[_Hung]:
    """All nodes that run, each with the place it hangs from."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _inside(item, owner, name, index)
    elif isinstance(value, ast.AST) and not _is_silent(value):
        yield value, owner, name, at
        for field, child in ast.iter_fields(value):
            if field in ("annotation", "args", "returns", "decorator_list", "exc") and not isinstance(value, ast.Call):
                continue
            yield from _inside(child, value, field)


def _is_silent(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_silent(node.value)
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in _SILENT
    )


_Found = tuple[str, str, str, Change]


def _changes(node: ast.AST, owner: ast.AST, name: str, at: int | None) -> Iterator[_Found]:
    def put(kind: str, new: ast.AST) -> _Found:
        new = ast.copy_location(new, node)

        def change() -> None:
            if at is None:
                setattr(owner, name, new)
            else:
                getattr(owner, name)[at] = new

        return kind, _text(node), _text(new), change

    if isinstance(node, ast.stmt):
        if _may_go(node):
            yield put("statement deleted", ast.Pass())
        if isinstance(node, ast.If | ast.While) and not (isinstance(node.test, ast.Constant)):
            yield _negated(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        new: Any = copy.deepcopy(node)
        new.ops = [_COMPARISONS[type(node.ops[0])]()]
        yield put("comparison", new)
    elif isinstance(node, ast.BoolOp):
        new = copy.deepcopy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield put("and / or", new)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node):
        new = copy.deepcopy(node)
        new.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield put("plus / minus", new)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        new = copy.deepcopy(node)
        new.func.id = _CALLS[node.func.id]
        yield put("least / greatest", new)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield put("true / false", ast.Constant(not node.value))
    elif isinstance(node, ast.Constant) and type(node.value) is int and isinstance(owner, ast.BinOp | ast.Compare):
        yield put("off by one", ast.Constant(node.value + 1))


def _negated(node: ast.If | ast.While) -> _Found:
    new = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
    word = "if" if isinstance(node, ast.If) else "while"

    def change() -> None:
        node.test = new

    return "condition negated", f"{word} {ast.unparse(node.test)}", f"{word} {ast.unparse(new)}", change


def _may_go(node: ast.stmt) -> bool:
    """Statements without which the function still compiles."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())
