"""X12, X29: the stored policy is read whole or not at all."""

from __future__ import annotations

import json

import pytest

from bookkeeper.access import Grant, Mode, Policy, Resource, Right, Subject, decode_policy, encode_policy
from bookkeeper.access.policy_format import POLICY_MAX
from bookkeeper.errors import ConfigError, MetadataFormatError

POLICY = Policy(
    Mode.ENFORCE,
    (
        Grant(Subject.parse("role:writer"), frozenset({Right.APPEND, Right.READ}), Resource.parse("streams:app")),
        Grant(Subject.parse("name:anyone"), frozenset({Right.REPAIR}), Resource.parse("cluster")),
    ),
)


def test_a_policy_reads_back_as_it_was_written() -> None:
    assert decode_policy(encode_policy(POLICY)) == POLICY


def test_the_stored_text_is_the_documented_one() -> None:
    assert json.loads(encode_policy(POLICY)) == {
        "format": 1,
        "mode": "enforce",
        "grants": [
            {"who": "role:writer", "rights": ["append", "read"], "on": "streams:app"},
            {"who": "name:anyone", "rights": ["repair"], "on": "cluster"},
        ],
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"format":1,"mode":"enforce"}',
        b'{"format":1,"mode":"loose","grants":[]}',
        b'{"format":1,"mode":"off","grants":[],"deny":[]}',
        b'{"format":1,"mode":"off","grants":[{"who":"a","rights":["fly"],"on":"cluster"}]}',
        b'{"format":1,"mode":"off","grants":[{"who":"a","rights":[],"on":"cluster"}]}',
        b'{"format":1,"mode":"off","grants":[{"who":"a","rights":["read"],"on":"cluster","unless":1}]}',
        b'{"format":1,"mode":"off","grants":[{"who":1,"rights":["read"],"on":"cluster"}]}',
        b'{"format":1,"mode":"off","grants":[{"who":"a","rights":["read"],"on":"streams:*"}]}',
        b"[" * 100_000,
        b" " * (POLICY_MAX + 1),
    ],
)
def test_a_damaged_policy_is_refused_and_nothing_of_it_is_used(body: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="access policy"):
        decode_policy(body)


def test_a_newer_format_is_refused_by_its_number() -> None:
    with pytest.raises(MetadataFormatError, match="has format 2; this version knows 1"):
        decode_policy(b'{"format":2,"rules":[]}')


def test_a_policy_that_would_not_fit_is_refused() -> None:
    grants = tuple(
        Grant(Subject.parse(f"team-{number:06}"), frozenset({Right.READ}), Resource.parse(f"streams:{'a' * 400}"))
        for number in range(1200)
    )
    with pytest.raises(ConfigError, match="grant to roles"):
        encode_policy(Policy(grants=grants))
