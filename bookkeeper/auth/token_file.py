"""The file of signing keys and tokens, which bookies and gateways share. Codec.

A line for each key, token and revocation; ``bk credentials`` and ``bk gateway token`` write them::

    signing-key  k1  66b2...
    revoked  0f5a6c7d8e9fa0b1
    token  spark-etl  sha256:8c2574892063f995fdf756bce07f46c1...  /etl /shared/etl

A key signs access tokens of the gateway's OAuth2 endpoint, and tokens for bookies
(:mod:`bookkeeper.auth.signed_tokens`). A line ``revoked`` names one of those, or ``principal:NAME`` for all that were
issued to a name. What a line ``token`` means is the gateways' affair (:mod:`bookkeeper.gateways.tokens`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.errors import ConfigError

KEY_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]{0,99}")
_KEY: Final = re.compile(r"(?:[0-9a-f]{2}){32,64}")
_REVOKED: Final = re.compile(r"[0-9a-f]{16}|principal:\S{1,512}")
REVOKED_PRINCIPAL: Final = "principal:"


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """Keys by name, in the file's order."""

    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def sign(self, key: str, text: str) -> str:
        """HMAC-SHA256 of ``text``, in hexadecimal."""
        return hmac.new(self.keys[key], text.encode(), hashlib.sha256).hexdigest()

    def has_signed(self, key: str, text: str, signature: str) -> bool:
        """Whether ``signature`` is that of ``text``. A key that is not there has signed nothing."""
        found = self.keys.get(key)
        right = hmac.new(found or b"\0", text.encode(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(signature.encode(), right.encode()) and found is not None


@dataclass(frozen=True, slots=True)
class TokenFile:
    """What such a file holds."""

    signing: SigningKeys = field(default_factory=SigningKeys)
    revoked: frozenset[str] = frozenset()
    tokens: tuple[tuple[int, tuple[str, ...]], ...] = field(default=(), repr=False)
    """The lines ``token``: their numbers, and their words after the first."""

    @classmethod
    def parse(cls, text: str, source: str) -> TokenFile:
        """Read the text of a file.

        Raises:
            ConfigError: a line is none of these. The error has its number, never its content.
        """
        keys: dict[str, bytes] = {}
        revoked: set[str] = set()
        tokens: list[tuple[int, tuple[str, ...]]] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            match words:
                case ["token", *rest]:
                    tokens.append((number, tuple(rest)))
                case ["revoked", what] if _REVOKED.fullmatch(what):
                    revoked.add(what)
                case ["signing-key", name, key] if KEY_NAME.fullmatch(name) and _KEY.fullmatch(key):
                    if keys.setdefault(name, bytes.fromhex(key)) != bytes.fromhex(key):
                        raise ConfigError(f"{source}, line {number}: another signing key has this name already")
                case _:
                    raise bad_line(source, number)
        return cls(SigningKeys(keys), frozenset(revoked), tuple(tokens))


def signing_key_line(name: str) -> str:
    """The line of the file that holds a new signing key.

    Raises:
        ConfigError: the name is not allowed.
    """
    if not KEY_NAME.fullmatch(name):
        raise ConfigError(f'"{name}" is no name of a key: a name has letters, digits and ._- and begins with a letter')
    return f"signing-key {name} {secrets.token_hex(32)}\n"


def revoked_line(what: str) -> str:
    """The line that revokes the token with this id, or with ``principal:NAME`` all of a name.

    Raises:
        ConfigError: it is neither.
    """
    if not _REVOKED.fullmatch(what):
        raise ConfigError(f'"{what}" is neither the id of a token (16 hexadecimal digits) nor principal:NAME')
    return f"revoked {what}\n"


def bad_line(source: str, number: int) -> ConfigError:
    """The error for a line that has none of the forms."""
    return ConfigError(
        f"{source}, line {number}: expected 'token NAME sha256:HASH [/PATH ...] [streams:NAME ...] [read-only] "
        "[until=2027-01-31T00:00:00Z]', 'signing-key NAME HEX' or 'revoked ID', as bk gateway token and bk credentials "
        "write them"
    )
