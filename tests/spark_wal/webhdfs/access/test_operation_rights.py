"""Every operation, and every parameter of one that can name a path, has a decision about its rights (X12)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bookkeeper.access import Grant, Mode, Policy, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from spark_wal.webhdfs.access.operation_rights import (
    LOOK,
    OPERATION_RIGHTS,
    PATH_PARAMETERS,
    VALUE_PARAMETERS,
    needs_elsewhere,
    needs_of,
)
from spark_wal.webhdfs.http import operations
from spark_wal.webhdfs.http.operations import OPERATIONS
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.request import Request

SOURCES = [Path(operations.__file__), Path(operations.__file__).with_name("parameters.py")]


async def no_body() -> AsyncIterator[bytes]:
    for _ in ():
        yield b""


@pytest.mark.rule("X12")
def test_every_operation_and_every_parameter_has_a_decision() -> None:
    """Cause: a parameter that names a path and that nobody looks at is a way around all rights."""
    assert set(OPERATION_RIGHTS) == {name for _, name in OPERATIONS}
    text = "".join(each.read_text() for each in SOURCES)
    read = set(re.findall(r'\.(?:text|required|boolean|long|short|given)\(\s*"([a-z.]+)"', text))
    read |= {name for group in re.findall(r"_given\(query, ([^)]*)\)", text) for name in re.findall(r'"(\w+)"', group)}
    assert {"destination", "overwrite", "startafter", "permission"} <= read, "the pattern finds what is read"
    named = {parameter for parameters in PATH_PARAMETERS.values() for parameter in parameters}
    assert read - VALUE_PARAMETERS - named == set()
    assert not VALUE_PARAMETERS & named


def refused(method: str, query: str, *grants: tuple[str, str]) -> list[str]:
    """The paths that a request for ``/theirs/f`` may not use, with these grants (rights, on)."""
    given = tuple(
        Grant(Subject.parse("a"), frozenset(map(Right, rights.split(","))), Resource.parse(on)) for rights, on in grants
    )
    permissions = CallerRights(lambda: Policy(Mode.ENFORCE, given))
    request = Request(method, "/theirs/f", Query(query), "h", no_body(), principal=Caller("a"), permissions=permissions)
    return [path for path, _ in operations.denials(request)]


@pytest.mark.rule("X12")
@pytest.mark.parametrize(
    ("method", "query", "needs"),
    [
        *((method, f"op={name}", needs_of(name, replaces=False)) for method, name in OPERATIONS if name != "RENAME"),
        ("HEAD", "op=OPEN", needs_of("OPEN", replaces=False)),
        ("PUT", "op=CREATE&overwrite=true", needs_of("CREATE", replaces=True)),
        ("PUT", "op=CREATE&createflag=CREATE,OVERWRITE", needs_of("CREATE", replaces=True)),
        ("PUT", "op=RENAME&destination=/mine/x", needs_of("RENAME", replaces=False)),
    ],
)
def test_each_operation_needs_its_rights_on_its_path_and_no_others(
    method: str, query: str, needs: tuple[tuple[Right, ...], ...]
) -> None:
    mine = ("create,delete", "paths:/mine")
    enough = [rights[0] for rights in needs or (tuple(Right),)]
    assert refused(method, query, mine, (",".join(enough), "paths:/theirs")) == []
    for rights in needs:
        others = ",".join(set(Right) - set(rights))
        assert refused(method, query, mine, (others, "paths:/theirs")) == ["/theirs/f"]
    assert refused(method, query, mine) == ["/theirs/f"]


@pytest.mark.rule("X12")
def test_a_rename_needs_rights_on_its_target_too_and_more_where_it_replaces() -> None:
    source = ("read,delete", "paths:/theirs/f")
    rename = "op=RENAME&destination=//mine//x/"
    assert refused("PUT", rename, source, ("create", "paths:/mine")) == []
    assert refused("PUT", rename, source, ("delete,append,read", "paths:/mine")) == ["/mine/x"]
    assert refused("PUT", rename, source) == ["/mine/x"]
    assert refused("PUT", rename) == ["/theirs/f", "/mine/x"]
    over = f"{rename}&renameoptions=OVERWRITE"
    assert refused("PUT", over, source, ("create", "paths:/mine")) == ["/mine/x"]
    assert refused("PUT", over, source, ("create,delete", "paths:/mine")) == []
    assert [*needs_elsewhere("DELETE", replaces=False)] == []


def test_who_may_only_look_sees_the_way_to_what_is_his() -> None:
    for name, needs in OPERATION_RIGHTS.items():
        if needs == LOOK:
            assert refused("GET", f"op={name}", ("read", "paths:/theirs/f/deep")) == [], name
            assert refused("GET", f"op={name}", ("read", "paths:/theirs/g")) == ["/theirs/f"], name
