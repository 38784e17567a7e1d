"""The table of routes, and which of them a request means."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.http_api_config import ACTIONS
from bookkeeper.http_api.routes import METHODS, ROUTES, Match, Scope, find, table
from tests.interop.http_routes.exchanges import GROUPS

PAGE = Path(__file__).parents[3] / "docs/compatibility.md"


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    begin = text.index("| route | needs | asked of | |")
    rows = text[begin:].partition("\n\n")[0].splitlines()
    assert rows[2:] == table()


def test_every_route_and_method_is_asked_of_apaches_server_too() -> None:
    asked = {
        (each.method, each.target.partition("?")[0].removesuffix("/")) for all_ in GROUPS.values() for each in all_
    }
    for path, route in ROUTES.items():
        for method in route.methods:
            assert (method, path) in asked or path == "/heartbeat"
        others = set(METHODS) - set(route.methods)
        assert not others or any((method, path) in asked for method in others), path


def test_every_action_is_some_routes_and_only_what_changes_nothing_has_none() -> None:
    actions = {each.action for route in ROUTES.values() for each in route.methods.values()} - {None}
    assert actions == set(ACTIONS)
    for route in ROUTES.values():
        for method, each in route.methods.items():
            if method != "GET" and not each.open and each.action is None:
                assert each.text.startswith("not supported"), route.path


@pytest.mark.parametrize("path", sorted(ROUTES))
def test_a_slash_at_the_end_makes_no_difference(path: str) -> None:
    method = next(iter(ROUTES[path].methods))
    found = find(method, path, is_bookie=True)
    assert isinstance(found, Match)
    assert find(method, f"{path}/", is_bookie=True) == found


@pytest.mark.parametrize("path", ["", "/", "//heartbeat", "/api/v1/bookie", "/api/v1/bookie/nothing", "/api/v1/gc//"])
def test_what_is_no_route_is_not_found(path: str) -> None:
    found = find("GET", path, is_bookie=True)
    assert isinstance(found, PageReply) and found.code == 404


def test_a_process_without_a_bookie_says_so() -> None:
    for path, route in ROUTES.items():
        found = find(next(iter(route.methods)), path, is_bookie=False)
        if route.scope is Scope.BOOKIE:
            assert found == PageReply(404, "this process is no bookie: ask the bookie itself")
        else:
            assert isinstance(found, Match)


def test_other_methods_are_refused_as_apache_refuses_them() -> None:
    assert find("PATCH", "/heartbeat", is_bookie=True)[0] == 405
    assert find("POST", "/metrics", is_bookie=True) == PageReply(403, "POST is forbidden. Should be GET method")
