"""Signed tokens: what a client shows a bookie, and what a bookie knows by it. Pure.

::

    bk2~KEY~ID~END~NAME~ROLES~HMAC        e.g.  bk2~k1~0f5a6c7d8e9fa0b1~1790000000~etl~writer~5d41402a...

The token says who has it (NAME, and ROLES separated by commas), until when (END, in seconds since 1970), and which key
has signed it (X9). A bookie needs nothing but the keys, so new tokens need no change of its files. Removing a key ends
all of its tokens, a line ``revoked`` one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.auth.token_file import REVOKED_PRINCIPAL, TokenFile
from bookkeeper.errors import ConfigError
from bookkeeper.secret import Secret

TOKEN_MAX: Final = 2048
"""Characters of a token at most."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:/+-]{0,199}")
_ROLE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_TOKEN: Final = re.compile(
    r"bk2~([A-Za-z0-9._-]{1,100})~([0-9a-f]{16})~([0-9]{1,12})~([A-Za-z0-9._@:/+-]{1,200})~([A-Za-z0-9._,-]{0,1000})"
    r"~([0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class SignedToken:
    """What a token says, once its signature is known to be right."""

    key: str
    id: str
    end: int
    """In seconds since 1970."""
    name: str
    roles: tuple[str, ...] = ()

    @property
    def unsigned(self) -> str:
        """The text that is signed."""
        return f"bk2~{self.key}~{self.id}~{self.end}~{self.name}~{','.join(self.roles)}"


def issue(
    file: TokenFile, name: str, id_bits: int, *, end: int, roles: Sequence[str] = (), key: str | None = None
) -> Secret:
    """Make a token. ``id_bits``, 64 bits of chance, tell it from others. Without ``key`` the file's newest key signs,
    which is the last one.

    Raises:
        ConfigError: a name or role is not allowed, or there is no such key.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f'"{name}" is no name for a token: a name has letters, digits and ._@:/+-')
    for role in roles:
        if not _ROLE.fullmatch(role):
            raise ConfigError(f'"{role}" is no role: a role has letters, digits and ._-')
    names = list(file.signing.keys)
    if not names or (key is not None and key not in names):
        which = "" if key is None else f" {key}"
        raise ConfigError(f"there is no signing key{which}: bk credentials signing-key makes one")
    token = SignedToken(key or names[-1], f"{id_bits:016x}", end, name, tuple(roles))
    made = f"{token.unsigned}~{file.signing.sign(token.key, token.unsigned)}"
    if len(made) > TOKEN_MAX:
        raise ConfigError(
            f"the token would have {len(made)} characters, and {TOKEN_MAX} are allowed: give it fewer roles"
        )
    return Secret(made)


def verified(file: TokenFile, text: str, now_s: float) -> SignedToken | None:
    """What a token says; None if it is not good, whatever the reason (X11)."""
    found = _TOKEN.fullmatch(text) if len(text) <= TOKEN_MAX else None
    if found is None:
        return None
    roles = tuple(found[5].split(",")) if found[5] else ()
    token = SignedToken(found[1], found[2], int(found[3]), found[4], roles)
    if not file.signing.has_signed(token.key, text.rpartition("~")[0], found[6]):
        return None
    return None if why_ended(file, token, now_s) is not None else token


def why_ended(file: TokenFile, token: SignedToken, now_s: float) -> str | None:
    """Why a token that was good is good no more; None if it still is."""
    if token.end <= now_s:
        return "its token has ended"
    if token.key not in file.signing.keys:
        return "the key that signed its token was removed"
    if token.id in file.revoked or REVOKED_PRINCIPAL + token.name in file.revoked:
        return "its token was revoked"
    return None
