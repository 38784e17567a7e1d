"""X12, X29: the stored policy is read whole or not at all."""

from __future__ import annotations

import json

import pytest

from bookkeeper.access import (
    Grant,
    Mode,
    Policy,
    PolicyChange,
    PrincipalQuota,
    Quota,
    Resource,
    Right,
    Subject,
    Tenant,
    decode_policy,
    encode_policy,
)
from bookkeeper.access.policy_format import POLICY_MAX
from bookkeeper.errors import ConfigError, MetadataFormatError

POLICY = Policy(
    Mode.ENFORCE,
    (
        Grant(Subject.parse("role:writer"), frozenset({Right.APPEND, Right.READ}), Resource.parse("streams:app")),
        Grant(Subject.parse("name:anyone"), frozenset({Right.REPAIR}), Resource.parse("cluster")),
    ),
    (Tenant("red", (Subject.parse("role:red"),), (Resource.parse("streams:red"),), Quota(bytes_kept=5, adds_per_s=7)),),
    (PrincipalQuota(Subject.parse("anyone"), Quota(ledgers=3, bytes_per_s=9)),),
    (PolicyChange(1_700_000_000_000, "eve on host", "mode enforce"),),
)
FORMAT_1 = (
    b'{"format":1,"mode":"enforce","grants":[{"who":"role:writer","rights":["append","read"],"on":"streams:app"},'
    b'{"who":"name:anyone","rights":["repair"],"on":"cluster"}]}'
)
EMPTY = b'"tenants":[],"quotas":[],"changes":[]'


def test_a_policy_reads_back_as_it_was_written() -> None:
    assert decode_policy(encode_policy(POLICY)) == POLICY


def test_the_stored_text_is_the_documented_one() -> None:
    assert json.loads(encode_policy(POLICY)) == {
        "format": 2,
        "mode": "enforce",
        "grants": [
            {"who": "role:writer", "rights": ["append", "read"], "on": "streams:app"},
            {"who": "name:anyone", "rights": ["repair"], "on": "cluster"},
        ],
        "tenants": [
            {
                "name": "red",
                "members": ["role:red"],
                "owns": ["streams:red"],
                "quota": {"bytes_kept": 5, "adds_per_s": 7},
            }
        ],
        "quotas": [{"who": "anyone", "quota": {"ledgers": 3, "bytes_per_s": 9}}],
        "changes": [{"at_ms": 1_700_000_000_000, "by": "eve on host", "what": "mode enforce"}],
    }


def test_the_first_format_has_no_tenants_and_still_opens() -> None:
    assert decode_policy(FORMAT_1) == Policy(POLICY.mode, POLICY.grants)


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
        b'{"format":2,"mode":"off","grants":[]}',
        b'{"format":true,"mode":"off","grants":[]}',
        b'{"format":0,"mode":"off","grants":[]}',
        b'{"format":2,"mode":"off","grants":{},' + EMPTY.replace(b"[]", b"{}", 1) + b"}",
        b'{"format":2,"mode":"off","grants":[{"who":"a","rights":"read","on":"cluster"}],' + EMPTY + b"}",
        b'{"format":2,"mode":"off","grants":[],"quotas":[],"changes":[],"tenants":[{"name":"a"}]}',
        b'{"format":2,"mode":"off","grants":[],"quotas":[],"changes":[],'
        b'"tenants":[{"name":"a","members":["x"],"owns":["cluster"],"quota":{}}]}',
        b'{"format":2,"mode":"off","grants":[],"tenants":[],"changes":[],"quotas":[{"who":"a","quota":{"disks":1}}]}',
        b'{"format":2,"mode":"off","grants":[],"tenants":[],"changes":[],"quotas":[{"who":"a","quota":{"ledgers":-1}}]}',
        b'{"format":2,"mode":"off","grants":[],"tenants":[],"quotas":[],"changes":[{"at_ms":"1","by":"a","what":"b"}]}',
        b"[" * 100_000,
        b" " * (POLICY_MAX + 1),
    ],
)
def test_a_damaged_policy_is_refused_and_nothing_of_it_is_used(body: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="access policy"):
        decode_policy(body)


def test_a_newer_format_is_refused_by_its_number() -> None:
    with pytest.raises(MetadataFormatError, match="has format 3; this version knows 2"):
        decode_policy(b'{"format":3,"rules":[]}')


def test_a_policy_that_would_not_fit_is_refused() -> None:
    grants = tuple(
        Grant(Subject.parse(f"team-{number:06}"), frozenset({Right.READ}), Resource.parse(f"streams:{'a' * 400}"))
        for number in range(1200)
    )
    with pytest.raises(ConfigError, match="grant to roles"):
        encode_policy(Policy(grants=grants))


@pytest.mark.rule("X38")
def test_what_is_wrong_with_a_policy_is_said_on_one_line() -> None:
    grant = {"who": "role:etl", "rights": ["\n2026 INFO forged\x1b[2J"], "on": "stream:a"}
    stored = json.dumps({"format": 1, "mode": "off", "grants": [grant]}).encode()
    with pytest.raises(MetadataFormatError) as refused:
        decode_policy(stored)
    assert str(refused.value).isprintable() and "forged" in str(refused.value)
