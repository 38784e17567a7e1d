from __future__ import annotations

import pytest

from bookkeeper.access import Resource, Right
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.caller import Caller, check_root, path_resource, stream_resource


@pytest.mark.rule("X57")
def test_roots_are_directories_not_prefixes() -> None:
    bob = Caller("bob", ("/a/b",))
    paths = ("/", "/a", "/a/b", "/a/b/c", "/a/bc", "/b")
    assert [p for p in paths if bob.may(Right.DELETE, path_resource(p))] == ["/a/b", "/a/b/c"]
    assert [p for p in paths if bob.leads_to(path_resource(p))] == ["/", "/a"]
    assert [s for s in ("", "a", "a/b", "/a/b", "a/b/c", "a/bc") if bob.may(Right.READ, stream_resource(s))] == [
        "a/b",
        "/a/b",
        "a/b/c",
    ]
    assert Caller("root").may(Right.ADMINISTER, path_resource("/anything"))
    assert not Caller("root").is_limited
    assert bob.is_limited


@pytest.mark.rule("X48")
def test_what_is_only_read_is_not_written_and_a_kind_is_not_the_other() -> None:
    caller = Caller("c", ("paths:/a",), ("streams:s",))
    assert caller.may(Right.APPEND, path_resource("/a/x"))
    assert not caller.may(Right.READ, stream_resource("a/x"))
    assert caller.may(Right.READ, stream_resource("s/t"))
    assert [right for right in Right if caller.may(right, stream_resource("s"))] == [Right.READ]
    assert not caller.may(Right.READ, path_resource("/s"))
    assert caller.leads_to(stream_resource(""))
    assert caller.limits() == "paths:/a, streams:s (read only)"
    assert Caller("n", ()).limits() == "nothing"


def test_a_root_is_checked_before_it_is_given_and_taken_as_it_is_afterwards() -> None:
    for good in ("/", "/a", "/a/b", "paths:/a", "streams:a/b"):
        check_root(good)
    for bad in (
        "a",
        "/a/",
        "/a b",
        "/a*",
        "/a//b",
        "/a/../b",
        "streams:a*",
        "ledgers:x",
        "cluster",
        "streams:",
        "paths:a",
    ):
        with pytest.raises(ConfigError):
            check_root(bad)
    assert Caller("old", ("/a*",)).may(Right.READ, Resource.of(path_resource("/a").kind, "/a")) is False
    assert Caller("old", ("/a*",)).may(Right.READ, path_resource("/a*/b"))
