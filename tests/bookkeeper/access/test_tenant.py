"""Tenants own things with names, and each thing has one owner."""

from __future__ import annotations

import pytest

from bookkeeper.access import Resource, Subject, Tenant
from bookkeeper.access.tenant import check_tenants
from bookkeeper.errors import ConfigError


def _tenant(name: str, *owns: str) -> Tenant:
    return Tenant(name, (), tuple(Resource.parse(each) for each in owns))


@pytest.mark.parametrize("what", ["cluster", "streams:/", "paths:/"])
def test_a_tenant_does_not_own_everything_of_a_kind(what: str) -> None:
    with pytest.raises(ConfigError, match="owns resources with names"):
        _tenant("red", what)


@pytest.mark.parametrize("who", ["anyone", "tenant:blue"])
def test_members_are_principals_and_roles(who: str) -> None:
    with pytest.raises(ConfigError, match="name principals or roles"):
        Tenant("red", (Subject.parse(who),))


def test_a_tenants_name_has_the_form_of_names() -> None:
    with pytest.raises(ConfigError, match="a tenant's name"):
        _tenant("re*")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("streams:a", "streams:a"),
        ("streams:a", "streams:a/b/c"),
        ("streams:a/b/c", "streams:a"),
        ("paths:/a", "paths:/a/b"),
    ],
)
def test_overlaps_are_refused_with_both_names(one: str, two: str) -> None:
    with pytest.raises(ConfigError, match=r"overlaps.*each thing has one owner"):
        check_tenants([_tenant("red", one), _tenant("blue", two)])


def test_neighbours_and_a_tenants_own_nesting_are_no_overlap() -> None:
    check_tenants([_tenant("red", "streams:a", "streams:a/b"), _tenant("blue", "streams:ab", "journals:a")])


def test_two_tenants_have_two_names() -> None:
    with pytest.raises(ConfigError, match="two tenants red"):
        check_tenants([_tenant("red"), _tenant("red")])


def test_what_is_given_away_is_owned_no_more() -> None:
    red = _tenant("red", "streams:a", "streams:b")
    assert red.without([Resource.parse("streams:a")]) == _tenant("red", "streams:b")
