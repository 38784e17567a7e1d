"""Whose a ledger is, by its custom metadata."""

from __future__ import annotations

import pytest

from bookkeeper.access import Principal, PrincipalKind, Resource
from bookkeeper.access.ownership import NO_OWNER, OWNER_KEY, checked_owner, ledgers_of, owner_in, owner_tag
from bookkeeper.errors import ConfigError


@pytest.mark.parametrize("text", ["ledgers:etl", "streams:app/x", "journals:nn", "paths:/etl"])
def test_what_a_client_writes_a_bookie_reads(text: str) -> None:
    owner = checked_owner(text)
    assert owner_in(owner_tag(owner)) == owner == Resource.parse(text)


@pytest.mark.parametrize("text", ["cluster", "ledgers:/", "streams:/", "", "etl", "paths:etl", "ledgers:" + "ä" * 512])
def test_not_everything_owns_ledgers(text: str) -> None:
    with pytest.raises(ConfigError):
        checked_owner(text)


@pytest.mark.rule("X12")
@pytest.mark.parametrize("value", [b"", b"\xff", b"cluster", b"ledgers:/", b"ledgers:x*", b"{}"])
def test_an_owner_that_cannot_be_read_is_nobody_and_cannot_be_claimed(value: bytes) -> None:
    """It is not as if none were named: then whoever comes first would own what an odd word was meant to protect."""
    assert owner_in({OWNER_KEY: value}) == NO_OWNER
    assert owner_in({}) is None


def test_nobody_and_odd_names_own_nothing() -> None:
    assert ledgers_of(Principal(PrincipalKind.TOKEN, "etl")) == Resource.parse("ledgers:etl")
    assert ledgers_of(Principal(PrincipalKind.NOBODY, "")) is None
    assert ledgers_of(Principal(PrincipalKind.CERTIFICATE, "/")) is None
    assert ledgers_of(Principal(PrincipalKind.CERTIFICATE, "*.example.org")) is None
