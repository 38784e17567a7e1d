"""What a grant matches today. Some typing errors give a grant that is valid and never good for anything."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote

from bookkeeper.access import Grant, Policy, Resource, ResourceKind
from bookkeeper.access.principal import TENANT
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import names_below

_NODES: Final = {ResourceKind.STREAMS: ("segments", "names"), ResourceKind.JOURNALS: ("journals",)}
"""Where the metadata keep a kind's names, each escaped as one part of a path."""


async def unmatched(metadata: Metadata, policy: Policy, grant: Grant) -> list[str]:
    """Sentences about what the grant names and is not there now; none: all is there, or cannot be looked up.

    Names of principals are not looked up.
    """
    said = []
    if grant.who.kind == TENANT and policy.tenant(grant.who.name) is None:
        said.append(_sentence(f"there is no tenant {grant.who.name}", grant.who.name, [t.name for t in policy.tenants]))
    on = grant.on
    if not on.name:
        return said
    if on.kind is ResourceKind.PATHS:
        return [*said, f"whether there is a path {on.name} was not looked up"]
    names = await names_of(metadata, on.kind)
    if names is None:
        said.append(f"whether somebody has ledgers as {on.name} is not known: nothing was counted yet")
    elif not any(on.covers(Resource(on.kind, name)) for name in names):
        said.append(_sentence(f"nothing matches {on} now", on.name, names))
    return said


async def names_of(metadata: Metadata, kind: ResourceKind) -> list[str] | None:
    """The names of a kind that there are; None: that is not known."""
    if kind is ResourceKind.LEDGERS:
        usage = await metadata.access.read_usage()
        return list(usage.owners) if usage is not None else None
    if kind not in _NODES:
        return None
    return [unquote(part) for part in await names_below(metadata.store, metadata.own(*_NODES[kind]), fresh=True)]


def _sentence(said: str, name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, 3)
    return f"{said}; there is {', '.join(near)}" if near else said
