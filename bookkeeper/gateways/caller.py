"""Who sends a request to a gateway, and what his credential is limited to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from bookkeeper.access import Principal, PrincipalKind, Resource, ResourceKind, Right
from bookkeeper.errors import ConfigError

EVERYWHERE: Final = "/"


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated sender of a request.

    A *root* is ``/etl`` (the paths below ``/etl``, and the stream ``etl`` with those below it), ``paths:/etl`` or
    ``streams:etl`` for one of the two, or ``/`` for everything. The rights that a policy grants are asked for besides.
    """

    name: str
    roots: tuple[str, ...] = (EVERYWHERE,)
    """What the credential is good for, with every right."""
    reads: tuple[str, ...] = ()
    """What it is good for with the right to read alone."""
    kind: PrincipalKind = PrincipalKind.TOKEN
    roles: tuple[str, ...] = ()
    ends_ms: int | None = field(default=None, compare=False)
    """When the credential ends, in milliseconds since 1970; None: by no time."""

    @property
    def principal(self) -> Principal:
        """Who it is to a policy."""
        return Principal(self.kind, self.name, self.roles)

    @property
    def is_limited(self) -> bool:
        """Whether there is anything that the credential is not good for."""
        return EVERYWHERE not in self.roots

    def may(self, right: Right, on: Resource) -> bool:
        """Whether the credential is good for this right on a resource."""
        return _any_covers(self.roots, on) or (right is Right.READ and _any_covers(self.reads, on))

    def leads_to(self, on: Resource) -> bool:
        """Whether a resource is above something that the credential is good for."""
        return any(_is_above(on, below) for root in (*self.roots, *self.reads) for below in resources_of(root))

    def limits(self) -> str:
        """What the credential is good for, for people: ``/a, /b (read only)``."""
        shown = [*self.roots, *(f"{each} (read only)" for each in self.reads)]
        return ", ".join(shown) or "nothing"


def check_root(root: str) -> None:
    """Check a root that is about to be given to somebody.

    Raises:
        ConfigError: it has no form of a root, or a name in it is none that a policy could have.
    """
    if root == EVERYWHERE:
        return
    text = f"paths:{root}" if root.startswith("/") else root
    if not text.startswith((f"{ResourceKind.PATHS}:", f"{ResourceKind.STREAMS}:")) or " " in root:
        raise ConfigError(
            f'"{root}" is no path of a token: a path is like /etl, without spaces and without a slash at its end; '
            "paths:/etl and streams:etl mean one of the two"
        )
    Resource.parse(text)


@lru_cache(maxsize=4096)
def resources_of(root: str) -> tuple[Resource, ...]:
    """What a root means. One that is a path is taken as it is: it may be older than the rules for names."""
    if root == EVERYWHERE:
        return Resource(ResourceKind.PATHS, ""), Resource(ResourceKind.STREAMS, "")
    if root.startswith("/"):
        return Resource(ResourceKind.PATHS, root), Resource(ResourceKind.STREAMS, root[1:])
    return (Resource.parse(root),)


def path_resource(path: str) -> Resource:
    """The resource of a normalized path."""
    return Resource(ResourceKind.PATHS, "" if path == "/" else path)


def stream_resource(stream: str) -> Resource:
    """The resource of a stream, as a request names it."""
    return Resource(ResourceKind.STREAMS, stream.removeprefix("/"))


def _any_covers(roots: Sequence[str], on: Resource) -> bool:
    return any(each.covers(on) for root in roots for each in resources_of(root))


def _is_above(above: Resource, below: Resource) -> bool:
    return above != below and above.covers(below)
