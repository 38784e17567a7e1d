"""The file of a bookie's users for DIGEST-MD5: names, what is kept of their passwords, roles. Codec.

::

    user  etl    digest:0d8c1c6a5e5b0f6d2b3f5d0e8e0c4a3b
    user  spark  digest:9b2f...  writer,reader

``bk credentials sasl-user`` writes the lines. A digest is H(user:bookkeeper:password): nobody reads the password from
it, but whoever has it can pose as the user at these bookies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.auth.sasl.digest_md5 import REALM, require_name, user_hash
from bookkeeper.errors import ConfigError
from bookkeeper.secret import Secret

_DIGEST: Final = re.compile(r"digest:([0-9a-f]{32})")
_ROLES: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}(?:,[A-Za-z0-9_][A-Za-z0-9._-]{0,63}){0,63}")


@dataclass(frozen=True, slots=True)
class SaslUser:
    """One user."""

    name: str
    hash: bytes = field(repr=False)
    roles: tuple[str, ...] = ()


def parse_users(text: str, source: str) -> Mapping[str, SaslUser]:
    """The users of a file, by name.

    Raises:
        ConfigError: a line is no user, or a user is there twice. The error has the line's number, never its content.
    """
    users: dict[str, SaslUser] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        user = _user(words)
        if user is None:
            raise ConfigError(
                f"{source}, line {number}: expected 'user NAME digest:HEX [ROLE,ROLE...]', as bk credentials sasl-user "
                "writes it"
            )
        if user.name in users:
            raise ConfigError(f"{source}, line {number}: this user stands above already; remove one of the lines")
        users[user.name] = user
    return users


def user_line(name: str, password: Secret, roles: Sequence[str] = ()) -> str:
    """The line of a user.

    Raises:
        ConfigError: the name or a role is not allowed, or the password is empty.
    """
    if not password.reveal():
        raise ConfigError("the password is empty")
    line = f"user {name} digest:{user_hash(name, REALM, password).hex()} {','.join(roles)}".rstrip()
    if _user(line.split()) is None or len(name.split()) != 1:
        raise ConfigError(
            f'"{name}" or one of the roles is no name: a user\'s name has no blanks and no colon, a role has letters, '
            "digits and ._-"
        )
    return line + "\n"


def _user(words: Sequence[str]) -> SaslUser | None:
    match words:
        case ["user", name, digest, *rest] if len(rest) <= 1 and (found := _DIGEST.fullmatch(digest)):
            try:
                require_name(name)
            except ValueError:
                return None
            if rest and not _ROLES.fullmatch(rest[0]):
                return None
            return SaslUser(name, bytes.fromhex(found[1]), tuple(rest[0].split(",")) if rest else ())
    return None
