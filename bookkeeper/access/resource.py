"""What somebody wants something of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bookkeeper.access.names import checked_name
from bookkeeper.errors import ConfigError


class ResourceKind(StrEnum):
    """The kinds of resources."""

    STREAMS = "streams"
    """By the streams' names."""
    JOURNALS = "journals"
    """By the journals' names, as they stand in the metadata below the place of all journals."""
    PATHS = "paths"
    """Files and directories of the WebHDFS gateway, from ``/`` on."""
    LEDGERS = "ledgers"
    """Ledgers by their owner's name."""
    CLUSTER = "cluster"
    """The whole cluster."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource, together with all below it: ``streams:app`` covers the streams ``app`` and ``app/x``, not ``apple``.

    Written ``KIND:NAME``, or ``KIND:/`` for all of a kind, or ``cluster`` for everything there is.
    """

    kind: ResourceKind
    name: str
    """Without a slash at its end; empty means all of the kind."""

    @classmethod
    def parse(cls, text: str) -> Resource:
        """Read one of the forms above.

        Raises:
            ConfigError: the text has another form.
        """
        if text == ResourceKind.CLUSTER:
            return CLUSTER
        kind, colon, name = text.partition(":")
        if not colon or kind not in set(ResourceKind) - {ResourceKind.CLUSTER}:
            raise ConfigError(
                f"{text[:100]!r} is no resource: write streams:NAME, journals:NAME, paths:/PATH, ledgers:OWNER, one of "
                "these with '/' for all of them, or cluster"
            )
        return cls.of(ResourceKind(kind), name)

    @classmethod
    def of(cls, kind: ResourceKind, name: str) -> Resource:
        """The resource of a kind with this name, which is checked.

        Raises:
            ConfigError: the name has no form that names have.
        """
        if name == "/":
            return cls(kind, "")
        name = checked_name(name, f"a name of {kind}")
        path = name.removeprefix("/") if kind is ResourceKind.PATHS else name
        if kind is ResourceKind.PATHS and not name.startswith("/"):
            raise ConfigError(f"a path begins with '/': paths:/{name}, not paths:{name}")
        if name.endswith("/"):
            raise ConfigError(f"{kind}:{name} ends with '/': leave it out, a name covers everything below it anyway")
        if kind is not ResourceKind.LEDGERS and any(part in ("", ".", "..") for part in path.split("/")):
            raise ConfigError(f"{kind}:{name} has a part that is empty, '.' or '..'; write the name in full")
        return cls(kind, name)

    def __str__(self) -> str:
        if self.kind is ResourceKind.CLUSTER:
            return str(self.kind)
        return f"{self.kind}:{self.name or '/'}"

    def covers(self, other: Resource) -> bool:
        """Whether ``other`` is this resource, or below it: what a grant on this one is also good for."""
        if self.kind is ResourceKind.CLUSTER:
            return True
        if self.kind is not other.kind:
            return False
        return not self.name or other.name == self.name or other.name.startswith(self.name + "/")

    def above(self) -> Iterator[Resource]:
        """The resources of its kind with names that cover it, without itself, from the nearest up."""
        name, slash, _ = self.name.rpartition("/")
        while slash and name:
            yield Resource(self.kind, name)
            name, slash, _ = name.rpartition("/")


CLUSTER: Final = Resource(ResourceKind.CLUSTER, "")
