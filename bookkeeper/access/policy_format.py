"""The policy as it is kept in the metadata: JSON, with the number of its format.

========  ============================================================================================================
format 1  ``mode`` and ``grants``
format 2  also ``tenants``, ``quotas`` and ``changes``. Always written; a version that knows only format 1 refuses it by
          its number, and does not take it for a policy without quotas
========  ============================================================================================================
"""

from __future__ import annotations

import json
from typing import Any, Final

from bookkeeper.access.change import PolicyChange
from bookkeeper.access.policy import Grant, Mode, Policy
from bookkeeper.access.principal import Subject
from bookkeeper.access.quota import PrincipalQuota, Quota
from bookkeeper.access.resource import Resource
from bookkeeper.access.rights import rights_of
from bookkeeper.access.tenant import Tenant
from bookkeeper.errors import ConfigError, MetadataFormatError

FORMAT: Final = 2
POLICY_MAX: Final = 512 * 1024
"""Bytes of a policy at most: a value of ZooKeeper has 1 MiB."""

_WHAT: Final = "the access policy"
_FIELDS: Final = {
    1: frozenset({"format", "mode", "grants"}),
    2: frozenset({"format", "mode", "grants", "tenants", "quotas", "changes"}),
}


def encode_policy(policy: Policy) -> bytes:
    """The bytes that are stored.

    Raises:
        ConfigError: they are more than :data:`POLICY_MAX`.
    """
    body = {"format": FORMAT, **policy_document(policy)}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > POLICY_MAX:
        raise ConfigError(
            f"{_WHAT} would have {len(text)} bytes, and {POLICY_MAX} are allowed: grant to roles, or on names higher up"
        )
    return text


def policy_document(policy: Policy) -> dict[str, Any]:
    """The policy as plain data, as it is stored and shown."""
    return {
        "mode": policy.mode.value,
        "grants": [grant_document(each) for each in policy.grants],
        "tenants": [tenant_document(each) for each in policy.tenants],
        "quotas": [{"who": str(each.who), "quota": each.quota.document()} for each in policy.quotas],
        "changes": [{"at_ms": each.at_ms, "by": each.by, "what": each.what} for each in policy.changes],
    }


def grant_document(grant: Grant) -> dict[str, Any]:
    """A grant as plain data."""
    return {"who": str(grant.who), "rights": sorted(grant.rights), "on": str(grant.on)}


def tenant_document(tenant: Tenant) -> dict[str, Any]:
    """A tenant as plain data."""
    return {
        "name": tenant.name,
        "members": [str(each) for each in tenant.members],
        "owns": [str(each) for each in tenant.owns],
        "quota": tenant.quota.document(),
    }


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
        if type(found) is int and found > FORMAT:
            raise MetadataFormatError(f"{_WHAT} has format {found}; this version knows {FORMAT}: use a newer one")
        if type(found) is not int or frozenset(body) != _FIELDS.get(found):
            raise ValueError("its fields are not those of this format")
        return Policy(
            Mode(body["mode"]),
            tuple(map(_grant, _list(body, "grants"))),
            tuple(map(_tenant, _list(body, "tenants"))),
            tuple(map(_quota, _list(body, "quotas"))),
            tuple(map(_change, _list(body, "changes"))),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ConfigError) as error:
        said = str(error)
        shown = said if said.isprintable() else repr(said)[1:-1]  # on one line of a log, whatever was stored
        raise MetadataFormatError(f"{_WHAT} cannot be read: {shown}") from error


def _fields(body: Any, *names: str, what: str) -> tuple[Any, ...]:
    if not isinstance(body, dict) or set(body) != set(names):
        raise ValueError(f"{what} has {', '.join(names)}, and nothing else")
    return tuple(body[name] for name in names)


def _list(body: Any, name: str) -> list[Any]:
    """A field that is a list; in formats that do not have the field, an empty one."""
    found = body.get(name, [])
    if not isinstance(found, list):
        raise ValueError(f"{name} is a list")
    return found


def _grant(body: Any) -> Grant:
    who, _, on = _fields(body, "who", "rights", "on", what="a grant")
    return Grant(Subject.parse(who), rights_of(_list(body, "rights")), Resource.parse(on))


def _tenant(body: Any) -> Tenant:
    name, _, _, quota = _fields(body, "name", "members", "owns", "quota", what="a tenant")
    return Tenant(
        name,
        tuple(Subject.parse(each) for each in _list(body, "members")),
        tuple(Resource.parse(each) for each in _list(body, "owns")),
        Quota.of(quota),
    )


def _quota(body: Any) -> PrincipalQuota:
    who, quota = _fields(body, "who", "quota", what="a quota")
    return PrincipalQuota(Subject.parse(who), Quota.of(quota))


def _change(body: Any) -> PolicyChange:
    at_ms, by, what = _fields(body, "at_ms", "by", "what", what="a change")
    if type(at_ms) is not int or not isinstance(by, str) or not isinstance(what, str):
        raise ValueError("a change has a time and two texts")
    return PolicyChange(at_ms, by, what)
