"""The policy as it is kept in the metadata: JSON, with the number of its format."""

from __future__ import annotations

import json
from typing import Any, Final

from bookkeeper.access.policy import Grant, Mode, Policy
from bookkeeper.access.principal import Subject
from bookkeeper.access.resource import Resource
from bookkeeper.access.rights import rights_of
from bookkeeper.errors import ConfigError, MetadataFormatError

FORMAT: Final = 1
POLICY_MAX: Final = 512 * 1024
"""Bytes of a policy at most: a value of ZooKeeper has 1 MiB."""

_WHAT: Final = "the access policy"


def encode_policy(policy: Policy) -> bytes:
    """The bytes that are stored.

    Raises:
        ConfigError: they are more than :data:`POLICY_MAX`.
    """
    grants = [{"who": str(each.who), "rights": sorted(each.rights), "on": str(each.on)} for each in policy.grants]
    body = {"format": FORMAT, "mode": policy.mode, "grants": grants}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > POLICY_MAX:
        raise ConfigError(
            f"{_WHAT} would have {len(text)} bytes, and {POLICY_MAX} are allowed: grant to roles, or on names higher up"
        )
    return text


def decode_policy(data: bytes) -> Policy:
    """Read what :func:`encode_policy` wrote.

    Raises:
        MetadataFormatError: the bytes are no policy, or of a format that this version does not know. Nothing of it is
            left out silently: a field without a meaning here could be one that denies.
    """
    if len(data) > POLICY_MAX:
        raise MetadataFormatError(f"{_WHAT} has {len(data)} bytes, more than {POLICY_MAX}")
    try:
        body = json.loads(data)
        found = body.get("format") if isinstance(body, dict) else None
        if isinstance(found, int) and found > FORMAT:
            raise MetadataFormatError(f"{_WHAT} has format {found}; this version knows {FORMAT}: use a newer one")
        if found != FORMAT or set(body) != {"format", "mode", "grants"}:
            raise ValueError("its fields are not those of this format")
        return Policy(Mode(body["mode"]), tuple(_grant(each) for each in body["grants"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ConfigError) as error:
        raise MetadataFormatError(f"{_WHAT} cannot be read: {error}") from error


def _grant(body: Any) -> Grant:
    if not isinstance(body, dict) or set(body) != {"who", "rights", "on"}:
        raise ValueError("a grant has who, rights and on, and nothing else")
    return Grant(Subject.parse(body["who"]), rights_of(body["rights"]), Resource.parse(body["on"]))
