"""Whose a ledger is: the word in its custom metadata (X12). Pure.

A ledger is owned by a resource: the stream or journal whose part it is, the path whose bytes it has, or
``ledgers:NAME`` for what somebody wrote by himself. Whoever creates the ledger writes that into its custom metadata,
under :data:`OWNER_KEY`, as text. A bookie keeps the owner that it has found first; only a hand-over changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bookkeeper.access.principal import Principal, PrincipalKind
from bookkeeper.access.resource import Resource, ResourceKind
from bookkeeper.errors import ConfigError

OWNER_KEY: Final = "bookkeeper.owner"
"""The key in a ledger's custom metadata whose value is its owner, such as ``streams:app/x`` or ``ledgers:etl``. The
metadata of a ledger are the cluster's to write; applications of Apache BookKeeper may set it, too."""

OWNER_MAX: Final = 1024
"""Bytes of an owner at most."""

NO_OWNER: Final = Resource(ResourceKind.LEDGERS, "")
"""Whose a ledger is that has no owner: only who has rights on ``ledgers:/`` or ``cluster`` may use it."""


def checked_owner(text: str) -> Resource:
    """The owner that ``text`` names.

    Raises:
        ConfigError: it names none: not a resource, the cluster, or all of a kind.
    """
    owner = Resource.parse(text)
    if owner.kind is ResourceKind.CLUSTER or not owner.name:
        raise ConfigError(f"{text} owns no ledger: name one stream, journal, path or owner, such as ledgers:etl")
    if len(str(owner).encode()) > OWNER_MAX:
        raise ConfigError(f"the owner {text[:60]}... has more than {OWNER_MAX} bytes")
    return owner


def owner_text(kind: ResourceKind, name: str) -> str | None:
    """The owner of this kind and name, as it is written down; None: names of owners cannot be like this one."""
    try:
        return str(checked_owner(str(Resource.of(kind, name))))
    except ConfigError:
        return None


def owner_tag(owner: Resource) -> dict[str, bytes]:
    """What the custom metadata of a ledger with this owner have besides. Raises: ConfigError: it owns no ledger."""
    return {OWNER_KEY: str(checked_owner(str(owner))).encode()}


def owner_in(custom: Mapping[str, bytes]) -> Resource | None:
    """The owner in a ledger's custom metadata; None: none is named. A name that cannot be read is nobody's
    (:data:`NO_OWNER`): such a ledger has no owner, and nobody becomes it by coming first."""
    if (value := custom.get(OWNER_KEY)) is None:
        return None
    try:
        return checked_owner(value.decode())
    except (ConfigError, UnicodeDecodeError):
        return NO_OWNER


def ledgers_of(principal: Principal) -> Resource | None:
    """``ledgers:NAME`` for a principal; None for nobody, and for one whose name no owner can have."""
    if principal.kind is PrincipalKind.NOBODY:
        return None
    try:
        return checked_owner(f"{ResourceKind.LEDGERS}:{principal.name}")
    except ConfigError:
        return None
