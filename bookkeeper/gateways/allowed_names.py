"""Which certificates may use a gateway, and for what: ``--allow NAME[=/PATH][:read]``. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.access import Principal, PrincipalKind, Subject
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.caller import EVERYWHERE, Caller, check_root

_READ: Final = ":read"
_KINDS: Final = frozenset(("name", "role", "certificate"))


@dataclass(frozen=True, slots=True)
class AllowedName:
    """One ``--allow``."""

    who: Subject
    root: str = EVERYWHERE
    read_only: bool = False

    @classmethod
    def parse(cls, text: str) -> AllowedName:
        """Read ``etl``, ``etl=/etl``, ``role:viewer=/etl:read``, ``spiffe://example.org/etl=/etl``. Names may have
        slashes and colons; the path begins at the first ``=/``.

        Raises:
            ConfigError: it has another form.
        """
        given = text.removesuffix(_READ)
        name, equals, path = given.partition("=/")
        if not name or name in _KINDS:
            raise ConfigError(
                f"--allow {text!r} names nobody: write NAME, NAME=/PATH, role:NAME, each with :read at its end if it "
                "may only read; somebody who is called like that is written name:NAME=/"
            )
        root = f"/{path}" if equals else EVERYWHERE
        check_root(root)
        return cls(Subject.parse(name), root, given != text)


class AllowedNames:
    """All of them. Without any, every certificate is good for everything."""

    def __init__(self, allowed: Sequence[AllowedName] = ()) -> None:
        self._allowed = tuple(allowed)

    def caller(self, name: str, roles: tuple[str, ...]) -> Caller:
        """The caller with a certificate of this name and these roles, and what it is good for here."""
        kind = PrincipalKind.CERTIFICATE
        if not self._allowed:
            return Caller(name, kind=kind, roles=roles)
        principal = Principal(kind, name, roles)
        meant = [each for each in self._allowed if each.who.matches(principal)]
        roots = tuple(dict.fromkeys(each.root for each in meant if not each.read_only))
        reads = tuple(dict.fromkeys(each.root for each in meant if each.read_only))
        return Caller(name, roots, reads, kind, roles)
