"""Tokens: the file they are in, and the short-lived ones made from them.

The file has a line for each token and each key. ``bk gateway token`` writes it. Every gateway of a namespace reads the
same file, so a token is valid at each of them, also after a restart::

    token  spark-etl  sha256:8c2574892063f995fdf756bce07f46c1...  /etl streams:shared until=2027-01-31T00:00:00Z
    token  viewer     sha256:66aa...  /etl read-only until=2027-01-31T00:00:00Z
    signing-key  k1  66b2...

The file holds only a token's hash (X48). A token has 256 random bits, so the hash need not be slow. The first 16 digits
of the hash are the token's *id*, which is no secret. After the hash come, in any order: the roots for which it is good
(:class:`~bookkeeper.gateways.caller.Caller`; none: everything), ``read-only``, and the moment at which it ends. A
version that knows only paths refuses a line with one of the other words, and says which line it is.

The gateway's OAuth2 endpoint returns an access token for a token. It is signed with the first signing key, consists of
key, token, time of expiry and HMAC (X9), is good for what its token is good for, and never ends later. Removing a token
or its key from the file revokes the access tokens made from it; so does a line ``revoked`` with its id.

The file is also that of bookies (:mod:`bookkeeper.auth.token_file`), which know other tokens by the same keys; a line
``token`` means nothing to them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from bookkeeper.auth.token_file import KEY_NAME, SigningKeys, TokenFile, bad_line
from bookkeeper.errors import ConfigError
from bookkeeper.gateways.caller import EVERYWHERE, Caller, check_root
from bookkeeper.secret import Secret

ACCESS_TOKEN_S: Final = 3600
"""How long an access token is good at most. Hadoop's client fetches a new one 30 s before."""

READ_ONLY: Final = "read-only"
UNTIL: Final = "until="

_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")
_ACCESS: Final = re.compile(r"bk1~([A-Za-z0-9._-]{1,100})~([0-9a-f]{16})~([0-9]{1,15})~([0-9a-f]{64})")
_UNTIL: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_TOKEN_MAX: Final = 4096
_NO_HASH: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Token:
    """One line of the file."""

    digest: str = field(repr=False)
    """The token's hash: 64 hexadecimal digits."""
    caller: Caller
    """Whose it is, and what it is good for."""
    end_s: int | None = None
    """When it ends, in seconds since 1970; None: never."""

    @property
    def id(self) -> str:
        """What it is called in lists and in the audit log."""
        return self.digest[:16]

    def has_ended(self, now_ms: int) -> bool:
        """Whether it is good no more."""
        return self.end_s is not None and self.end_s * 1000 <= now_ms


class TokenBook:
    """The tokens of one file, as they were when the file was read."""

    def __init__(self, tokens: Sequence[Token] = (), signing: SigningKeys = SigningKeys()) -> None:  # noqa: B008
        self._tokens = {token.id: token for token in tokens}
        self._signing = signing

    @classmethod
    def parse(cls, text: str, source: str) -> TokenBook:
        """Read the text that ``bk gateway token`` wrote.

        Raises:
            ConfigError: a line is neither a token nor a key. The error has its number, never its content.
        """
        file = TokenFile.parse(text, source)
        tokens: list[Token] = []
        for number, words in file.tokens:
            name, digest, *rest = (*words, "", "")[: max(2, len(words))]
            found = _HASH.fullmatch(digest)
            if found is None or not KEY_NAME.fullmatch(name):
                raise bad_line(source, number)
            token = _token(name, found[1], rest, source, number)
            if token.id not in file.revoked:
                tokens.append(token)
        return cls(tokens, file.signing)

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens.values())

    @property
    def can_sign(self) -> bool:
        return bool(self._signing.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the signing keys; the first one signs."""
        return tuple(self._signing.keys)

    def owner(self, text: str, now_ms: int) -> Caller | None:
        """The owner of a token or access token; None if it is not valid, whatever the reason (X11)."""
        if len(text) > _TOKEN_MAX:
            return None
        if (parts := _ACCESS.fullmatch(text)) is not None:
            return self._owner_of_access(parts, now_ms)
        token = self._find(text)
        return None if token is None else _ending(token, token.end_s, now_ms)

    def why_refused(self, text: str, now_ms: int) -> str:
        """Why a token that is not valid is not, for the audit log: nobody who shows one is told (X11)."""
        parts = _ACCESS.fullmatch(text) if len(text) <= _TOKEN_MAX else None
        if parts is not None:
            token = self._tokens.get(parts[2]) if self._has_signed(parts) else None
            if not self._has_signed(parts):
                return "no signing key of the token file has signed the access token, or its key was removed"
            if token is None:
                return f"token {parts[2]} was revoked, and its access tokens with it"
            return f"token {parts[2]} has ended" if token.has_ended(now_ms) else "the access token has ended"
        token = self._find(text) if len(text) <= _TOKEN_MAX else None
        return "the token file does not have the token" if token is None else f"token {token.id} has ended"

    def claimed(self, text: str) -> str:
        """Whose a token is, or says that it is, that is not valid; empty: it names nobody."""
        parts = _ACCESS.fullmatch(text) if len(text) <= _TOKEN_MAX else None
        token = self._tokens.get(parts[2]) if parts is not None else None
        if parts is None and len(text) <= _TOKEN_MAX:
            token = self._find(text)
        return "" if token is None else token.caller.name

    def exchange(self, name: str, text: str, now_ms: int) -> Secret | None:
        """Make an access token for the token of ``name``; None if the token is not valid, or there is no key."""
        token = self._find(text) if len(text) <= _TOKEN_MAX else None
        if token is None or token.caller.name != name or token.has_ended(now_ms) or not self._signing.keys:
            return None
        key = next(iter(self._signing.keys))
        end_s = now_ms // 1000 + ACCESS_TOKEN_S
        unsigned = f"bk1~{key}~{token.id}~{end_s if token.end_s is None else min(end_s, token.end_s)}"
        return Secret(f"{unsigned}~{self._signing.sign(key, unsigned)}")

    def end_of(self, access: Secret) -> int:
        """When an access token that :meth:`exchange` made ends, in seconds since 1970."""
        return int(access.reveal().split("~")[3])

    def _find(self, text: str) -> Token | None:
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        token = self._tokens.get(digest[:16])
        same = hmac.compare_digest(digest, token.digest if token is not None else _NO_HASH)
        return token if same else None

    def _owner_of_access(self, parts: re.Match[str], now_ms: int) -> Caller | None:
        token = self._tokens.get(parts[2])
        if not self._has_signed(parts) or token is None or token.has_ended(now_ms):
            return None
        return _ending(token, min(int(parts[3]), token.end_s or int(parts[3])), now_ms)

    def _has_signed(self, parts: re.Match[str]) -> bool:
        return self._signing.has_signed(parts[1], parts[0].rpartition("~")[0], parts[4])


def new_token() -> Secret:
    """Make a token of 256 random bits."""
    return Secret(secrets.token_urlsafe(32))


def token_line(
    name: str, token: Secret, roots: Sequence[str] = (), *, read_only: bool = False, end_s: int | None = None
) -> str:
    """The line of the file that holds a token. ``end_s``: when it ends, in seconds since 1970.

    Raises:
        ConfigError: the name or a root is not allowed.
    """
    if not KEY_NAME.fullmatch(name):
        raise ConfigError(
            f'"{name}" is no name of a token: a name has letters, digits and ._- and begins with a letter'
        )
    for root in roots:
        check_root(root)
    digest = hashlib.sha256(token.reveal().encode()).hexdigest()
    words = ["token", name, f"sha256:{digest}", *roots]
    words += [READ_ONLY] if read_only else []
    words += [] if end_s is None else [f"{UNTIL}{end_text(end_s)}"]
    return " ".join(words) + "\n"


def end_text(end_s: int) -> str:
    """A moment as it stands in the file: 2027-01-31T00:00:00Z."""
    return datetime.fromtimestamp(end_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_tokens(text: str, ids: frozenset[str]) -> str:
    """The text of a file without the lines of these tokens. Everything else stays as it is."""
    kept = []
    for line in text.splitlines(keepends=True):
        words = line.split()
        found = _HASH.fullmatch(words[2]) if len(words) > 2 and words[0] == "token" else None
        if found is None or found[1][:16] not in ids:
            kept.append(line)
    return "".join(kept)


def _token(name: str, digest: str, words: Sequence[str], source: str, number: int) -> Token:
    """Raises ConfigError: a word is none that a token has. Nothing is left out: it could be a limit."""
    roots: list[str] = []
    read_only, end_s = False, None
    for word in words:
        if word == READ_ONLY:
            read_only = True
        elif word.startswith(UNTIL) and end_s is None:
            end_s = _end_of(word.removeprefix(UNTIL))
            if end_s is None:
                raise bad_line(source, number)
        elif _is_path(word):
            roots.append(word)
        elif word.startswith(("paths:", "streams:")):
            try:
                check_root(word)
            except ConfigError as error:
                raise bad_line(source, number) from error
            roots.append(word)
        else:
            raise bad_line(source, number)
    return Token(digest, _caller(name, tuple(roots), read_only), end_s)


def _ending(token: Token, end_s: int | None, now_ms: int) -> Caller | None:
    """Whose a token is that ends then; None if it has ended."""
    if end_s is None:
        return token.caller
    return replace(token.caller, ends_ms=end_s * 1000) if end_s * 1000 > now_ms else None


def _caller(name: str, roots: tuple[str, ...], read_only: bool) -> Caller:
    roots = roots or (EVERYWHERE,)
    return Caller(name, (), roots) if read_only else Caller(name, roots)


def _end_of(text: str) -> int | None:
    if not _UNTIL.fullmatch(text):
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _is_path(path: str) -> bool:
    return path == "/" or (path.startswith("/") and not path.endswith("/") and "//" not in path and " " not in path)
