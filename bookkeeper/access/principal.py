"""Who is at the other end, and whom a grant means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bookkeeper.access.names import checked_name


class PrincipalKind(StrEnum):
    """How a principal has shown who he is."""

    CERTIFICATE = "certificate"
    TOKEN = "token"
    SASL = "sasl"
    PROVIDER = "provider"
    """A provider of authentication that is not built in."""
    NOBODY = "nobody"
    """Nobody was asked: a port without authentication."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is at the other end of a connection, or behind a request. It never changes."""

    kind: PrincipalKind
    name: str
    """A certificate's alternative name or common name, a token's owner, a user of SASL; empty for nobody."""
    roles: tuple[str, ...] = ()
    """The roles of a certificate, or of a token."""

    def __str__(self) -> str:
        return self.name or "nobody"


NOBODY: Final = Principal(PrincipalKind.NOBODY, "")
"""Somebody whom nobody has asked."""

_ANYONE: Final = "anyone"
_NAME: Final = "name"
_ROLE: Final = "role"
TENANT: Final = "tenant"
_KINDS: Final = frozenset(PrincipalKind) - {PrincipalKind.NOBODY}


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a grant means: ``etl`` (whoever has shown this name), ``role:writer``, ``certificate:etl`` (by a certificate
    alone; also ``token:``, ``sasl:``, ``provider:``), ``tenant:red`` (the members of a tenant), or ``anyone`` (every
    client that is admitted).

    A name that begins like one of these is written ``name:role:writer``.
    """

    kind: str
    """``name``, ``role``, ``tenant``, ``anyone``, or a kind of principal."""
    name: str

    @classmethod
    def parse(cls, text: str) -> Subject:
        """Read one of the forms above.

        Raises:
            ConfigError: the text has another form.
        """
        if text == _ANYONE:
            return ANYONE
        kind, colon, name = text.partition(":")
        if not colon or kind not in {_NAME, _ROLE, TENANT, *_KINDS}:
            kind, name = _NAME, text
        return cls(kind, checked_name(name, "a principal's name"))

    def __str__(self) -> str:
        if self == ANYONE:
            return _ANYONE
        plain = self.kind == _NAME and Subject.parse(self.name) == self and self.name != _ANYONE
        return self.name if plain else f"{self.kind}:{self.name}"

    def matches(self, principal: Principal) -> bool:
        """Whether ``principal`` is meant. Who belongs to a tenant only the policy knows (:meth:`Policy.matches`)."""
        match self.kind:
            case "anyone":
                return True
            case "role":
                return self.name in principal.roles
            case "name":
                return principal.kind is not PrincipalKind.NOBODY and self.name == principal.name
            case _:
                return self.kind == principal.kind and self.name == principal.name


ANYONE: Final = Subject(_ANYONE, "")
