from __future__ import annotations

import pytest

from bookkeeper.access import PrincipalKind
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.allowed_names import AllowedName, AllowedNames


@pytest.mark.parametrize(
    ("text", "who", "root", "read_only"),
    [
        ("etl", "etl", "/", False),
        ("etl:read", "etl", "/", True),
        ("etl=/etl", "etl", "/etl", False),
        ("etl=/etl/a=b:read", "etl", "/etl/a=b", True),
        ("etl=/:read", "etl", "/", True),
        ("role:writer=/w", "role:writer", "/w", False),
        ("spiffe://example.org/etl=/x", "spiffe://example.org/etl", "/x", False),
        ("role:read=/", "role:read", "/", False),
        ("name:role=/", "role", "/", False),
    ],
)
def test_what_an_allow_means(text: str, who: str, root: str, read_only: bool) -> None:
    allowed = AllowedName.parse(text)
    assert (str(allowed.who), allowed.root, allowed.read_only) == (who, root, read_only)


@pytest.mark.parametrize(
    "text", ["", "=/x", ":read", "role:read", "certificate:read", "e*", "etl=/a/", "etl=/a*", "e ", "role:"]
)
def test_an_allow_that_could_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        AllowedName.parse(text)


@pytest.mark.rule("X57")
def test_a_certificate_is_good_for_what_names_it_and_for_nothing_without() -> None:
    allowed = AllowedNames([AllowedName.parse(each) for each in ("etl=/etl", "role:viewer=/:read", "etl=/shared:read")])
    etl = allowed.caller("etl", ())
    assert (etl.roots, etl.reads, etl.kind) == (("/etl",), ("/shared",), PrincipalKind.CERTIFICATE)
    assert allowed.caller("eve", ("viewer",)).reads == ("/",)
    stranger = allowed.caller("role:viewer", ("writer",))
    assert (stranger.roots, stranger.reads) == ((), ())
    assert AllowedNames().caller("anybody", ("a",)).roots == ("/",)
