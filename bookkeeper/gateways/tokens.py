"""Tokens: the file they are in, and the short-lived ones made from them.

The file has a line for each token and each key. ``bk gateway token`` writes it. Every gateway of a namespace reads the
same file, so a token is valid at each of them, also after a restart::

    token  spark-etl  sha256:8c2574892063f995fdf756bce07f46c1...  /etl /shared/etl
    signing-key  k1  66b2...

The file holds only a token's hash (X48). A token has 256 random bits, so the hash need not be slow. After the hash come
the paths below which the owner may do anything; without a path that is everywhere. The gateway's OAuth2 endpoint
returns an access token for a token. It is signed with the first signing key and consists of key, token, time of expiry
and HMAC (X9). The file is also that of bookies (:mod:`bookkeeper.auth.token_file`), which know other tokens by the same
keys; a line ``token`` means nothing to them. Removing a token or its key from the file revokes the access tokens made
from it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.auth.token_file import KEY_NAME, SigningKeys, TokenFile, bad_line
from bookkeeper.errors import ConfigError
from bookkeeper.secret import Secret

ACCESS_TOKEN_S: Final = 3600
"""How long an access token is good. Hadoop's client fetches a new one 30 s before."""

_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")
_ACCESS: Final = re.compile(r"bk1~([A-Za-z0-9._-]{1,100})~([0-9a-f]{16})~([0-9]{1,15})~([0-9a-f]{64})")
_TOKEN_MAX: Final = 4096
_NO_HASH: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated sender of a request."""

    name: str
    roots: tuple[str, ...] = ("/",)
    """The paths below which the principal may do anything."""

    def holds(self, path: str) -> bool:
        """Whether ``path`` is one of the roots or below one."""
        return any(root == "/" or path == root or path.startswith(root + "/") for root in self.roots)

    def leads_to(self, path: str) -> bool:
        """Whether ``path`` is above one of the roots."""
        return path == "/" or any(root.startswith(path + "/") for root in self.roots)


@dataclass(frozen=True, slots=True)
class _Token:
    digest: str
    principal: Caller


class TokenBook:
    """The tokens of one file, as they were when the file was read."""

    def __init__(self, tokens: Sequence[_Token] = (), signing: SigningKeys = SigningKeys()) -> None:  # noqa: B008
        self._tokens = {token.digest[:16]: token for token in tokens}
        self._signing = signing

    @classmethod
    def parse(cls, text: str, source: str) -> TokenBook:
        """Read the text that ``bk gateway token`` wrote.

        Raises:
            ConfigError: a line is neither a token nor a key. The error has its number, never its content.
        """
        file = TokenFile.parse(text, source)
        tokens: list[_Token] = []
        for number, words in file.tokens:
            name, digest, *roots = (*words, "", "")[: max(2, len(words))]
            if not (KEY_NAME.fullmatch(name) and (found := _HASH.fullmatch(digest)) and all(map(_is_root, roots))):
                raise bad_line(source, number)
            tokens.append(_Token(found[1], Caller(name, tuple(roots) or ("/",))))
        return cls(tokens, file.signing)

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def can_sign(self) -> bool:
        return bool(self._signing.keys)

    def owner(self, text: str, now_ms: int) -> Caller | None:
        """The owner of a token or access token; None if it is not valid, whatever the reason (X11)."""
        if len(text) > _TOKEN_MAX:
            return None
        if (parts := _ACCESS.fullmatch(text)) is not None:
            return self._owner_of_access(parts, now_ms)
        token = self._find(text)
        return None if token is None else token.principal

    def claimed(self, text: str) -> str:
        """The name that an access token which is not valid names, also if it is forged; empty if none can be told."""
        parts = _ACCESS.fullmatch(text) if len(text) <= _TOKEN_MAX else None
        token = None if parts is None else self._tokens.get(parts[2])
        return "" if token is None else token.principal.name

    def exchange(self, name: str, text: str, now_ms: int) -> Secret | None:
        """Make an access token for the token of ``name``; None if the token is not valid, or there is no key."""
        token = self._find(text) if len(text) <= _TOKEN_MAX else None
        if token is None or token.principal.name != name or not self._signing.keys:
            return None
        key = next(iter(self._signing.keys))
        unsigned = f"bk1~{key}~{token.digest[:16]}~{now_ms // 1000 + ACCESS_TOKEN_S}"
        return Secret(f"{unsigned}~{self._signing.sign(key, unsigned)}")

    def _find(self, text: str) -> _Token | None:
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        token = self._tokens.get(digest[:16])
        same = hmac.compare_digest(digest, token.digest if token is not None else _NO_HASH)
        return token if same else None

    def _owner_of_access(self, parts: re.Match[str], now_ms: int) -> Caller | None:
        token = self._tokens.get(parts[2])
        same = self._signing.has_signed(parts[1], parts[0].rpartition("~")[0], parts[4])
        if not same or token is None or int(parts[3]) * 1000 <= now_ms:
            return None
        return token.principal


def new_token() -> Secret:
    """Make a token of 256 random bits."""
    return Secret(secrets.token_urlsafe(32))


def token_line(name: str, token: Secret, roots: Sequence[str] = ()) -> str:
    """The line of the file that holds a token.

    Raises:
        ConfigError: the name or a path is not allowed.
    """
    if not KEY_NAME.fullmatch(name):
        raise ConfigError(
            f'"{name}" is no name of a token: a name has letters, digits and ._- and begins with a letter'
        )
    for root in roots:
        if not _is_root(root):
            raise ConfigError(
                f'"{root}" is no path of a token: a path is like /etl, without spaces and without a slash at its end'
            )
    digest = hashlib.sha256(token.reveal().encode()).hexdigest()
    return " ".join(["token", name, f"sha256:{digest}", *roots]) + "\n"


def _is_root(path: str) -> bool:
    return path == "/" or (path.startswith("/") and not path.endswith("/") and "//" not in path and " " not in path)
