"""Both halves of one DIGEST-MD5 exchange (RFC 2831), as Apache BookKeeper has it. Machines: bytes in, bytes out.

::

    client                                        bookie
      (empty)                       ---------->
                                    <----------   realm, nonce
      user, cnonce, response        ---------->     what only somebody with the password can compute
                                    <----------   rspauth: so does the bookie

Only quality ``auth`` is spoken: who is there, and nothing about the bytes that follow. TLS protects those. An exchange
is made once: a nonce is good for one response, soon after it was told, and the response is the first one to it
(``nc=00000001``); RFC 2831's *subsequent authentication* is not offered.

The library ``pure-sasl`` has a client's half, and was left out: it takes its cnonce from ``random.random()``, compares
in variable time, knows no UTF-8 and no authzid, and does not insist on ``rspauth``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NoReturn

from bookkeeper.auth.sasl.directives import Directives, encode, quoted
from bookkeeper.errors import AuthenticationError
from bookkeeper.secret import Secret

REALM: Final = "bookkeeper"
"""The realm that Apache's bookies name, and ours."""
URI: Final = b"bookkeeper/bookkeeper"
"""Service and host, which Apache's clients and bookies have as constants."""

CHALLENGE_MAX: Final = 2048
"""A bookie's message has fewer bytes (RFC 2831, 2.1.1)."""
RESPONSE_MAX: Final = 4096
"""A client's message has fewer bytes (RFC 2831, 2.1.2)."""
NAME_MAX: Final = 256
"""Characters of a user's name at most."""
NONCE_MAX: Final = 256
"""Bytes of a nonce at most."""
NONCE_S: Final = 60.0
"""Seconds for which a nonce is good."""

_FIRST: Final = b"00000001"
_AUTH: Final = b"auth"
_UTF8: Final = b"utf-8"
_SESSION: Final = b"md5-sess"
_HASH: Final = re.compile(rb"[0-9a-f]{32}")
_MAX_BUFFER: Final = re.compile(rb"[0-9]{1,9}")
_NOBODY: Final = b"\0" * 16
"""Instead of the hash of a user who is not known, so that his refusal takes as long."""


def user_hash(user: str, realm: str, password: Secret) -> bytes:
    """What a server keeps of a password: H(user:realm:password), 16 bytes. Whoever has it can pose as the user."""
    return _md5(b":".join((_hashed_text(user), _hashed_text(realm), _hashed_text(password.reveal()))))


class DigestStep(Enum):
    """How far an exchange has come."""

    NEW = "nothing was said"
    CHALLENGED = "the bookie has sent its nonce"
    DONE = "both know who is there"
    FAILED = "somebody was refused"


@dataclass(frozen=True, slots=True)
class VerifiedClient:
    """A client has shown who it is."""

    user: str
    reply: bytes
    """What shows the client that the bookie knows the user's password, too."""


class DigestServer:
    """A bookie's half. It refuses by AuthenticationError, whose text is for the bookie's log alone; then it is over."""

    def __init__(self, nonce: bytes, *, realm: str = REALM, uri: bytes = URI) -> None:
        """``nonce`` is used for this exchange alone, and cannot be guessed."""
        self.step = DigestStep.NEW
        self._nonce = nonce
        self._realm = realm
        self._uri = uri
        self._since = 0.0

    def challenge(self, message: bytes, now: float) -> bytes:
        """The answer to the client's first message, which says nothing. ``now`` is monotonic."""
        if self.step is not DigestStep.NEW or message:
            self._fail("it began an exchange in the middle")
        self.step, self._since = DigestStep.CHALLENGED, now
        return encode(
            (
                ("realm", quoted(self._realm.encode())),
                ("nonce", quoted(self._nonce)),
                ("qop", quoted(_AUTH)),
                ("charset", _UTF8),
                ("algorithm", _SESSION),
            )
        )

    def verify(self, message: bytes, hash_of: Callable[[str], bytes | None], now: float) -> VerifiedClient:
        """Judge the client's response; ``hash_of`` a user is his :func:`user_hash`, or None."""
        if self.step is not DigestStep.CHALLENGED:
            self._fail("it sent a response without a challenge, or a second one")
        if now - self._since > NONCE_S:
            self._fail(f"its response came more than {NONCE_S:g} s after the challenge")
        try:
            response = Directives.parse(message, most=RESPONSE_MAX)
            user = self._user(response)
            shown, cnonce = response.required("response"), response.required("cnonce")
            authzid = response.one("authzid")
        except UnicodeError:
            self._fail("its response has a name that is not in its character set")
        except ValueError as error:
            self._fail(f"its response cannot be read: {error}")
        known = hash_of(user)
        key = _session_key(_NOBODY if known is None else known, self._nonce, cnonce, authzid)
        right = hmac.compare_digest(shown, _proof(key, self._nonce, cnonce, b"AUTHENTICATE:" + self._uri))
        if not right or known is None:
            self._fail("there is no such user, or the password is wrong", claimed=user)
        self.step = DigestStep.DONE
        return VerifiedClient(user, encode([("rspauth", _proof(key, self._nonce, cnonce, b":" + self._uri))]))

    def _user(self, response: Directives) -> str:
        """Check what the client says besides its proof; return the user's name. Raises ValueError."""
        utf8 = response.one("charset")
        if utf8 not in (None, _UTF8):
            raise ValueError("charset is not utf-8")
        encoding = "latin-1" if utf8 is None else "utf-8"
        user = response.required("username").decode(encoding)
        require_name(user)
        if not hmac.compare_digest(response.required("nonce"), self._nonce):
            raise ValueError("it is for another nonce")
        if response.required("nc") != _FIRST:
            raise ValueError("it is not the first one to its nonce")
        if response.one("qop") not in (None, _AUTH):
            raise ValueError("it asks for another quality of protection than auth")
        if response.required("digest-uri") != self._uri:
            raise ValueError("it is for another service")
        if (response.one("realm") or b"").decode(encoding) != self._realm:
            raise ValueError("it is for another realm")
        if not 1 <= len(response.required("cnonce")) <= NONCE_MAX:
            raise ValueError("its cnonce is too long")
        if (buffer := response.one("maxbuf")) is not None and not _MAX_BUFFER.fullmatch(buffer):
            raise ValueError("maxbuf is no number")
        if response.one("cipher") is not None:
            raise ValueError("it asks for a cipher, and there is none")
        if not _HASH.fullmatch(response.required("response")):
            raise ValueError("its proof has another form")
        if (authzid := response.one("authzid")) is not None and authzid.decode() != user:
            raise ValueError("it wants to act as somebody else than its user")
        return user

    def _fail(self, reason: str, *, claimed: str = "") -> NoReturn:
        self.step = DigestStep.FAILED
        error = AuthenticationError(reason)
        error.claimed = claimed
        raise error


class DigestClient:
    """A client's half. It refuses a bookie by AuthenticationError; then it is over."""

    def __init__(
        self, user: str, password: Secret, cnonce: bytes, *, realm: str | None = None, uri: bytes = URI
    ) -> None:
        """``cnonce`` cannot be guessed, and is used for this exchange alone. Without ``realm`` the one realm that the
        bookie offers is taken."""
        require_name(user)
        self.step = DigestStep.NEW
        self._user = user
        self._password = password
        self._cnonce = cnonce
        self._wanted = realm
        self._uri = uri
        self._expected = b""

    def respond(self, message: bytes) -> bytes:
        """The answer to the bookie's challenge."""
        if self.step is not DigestStep.NEW:
            self._fail("it sends a challenge again")
        try:
            challenge = Directives.parse(message, most=CHALLENGE_MAX)
            nonce, encoding = self._nonce_and_encoding(challenge)
            realm = self._realm(challenge, encoding)
            user, offered = self._user.encode(encoding), realm.encode(encoding)
        except UnicodeError:
            self._fail("a name cannot be written, or is not written, in its character set")
        except ValueError as error:
            self._fail(f"its challenge cannot be used: {error}")
        key = _session_key(user_hash(self._user, realm, self._password), nonce, self._cnonce, None)
        self._expected = _proof(key, nonce, self._cnonce, b":" + self._uri)
        self.step = DigestStep.CHALLENGED
        said = [("charset", _UTF8)] if encoding == "utf-8" else []
        said += [("username", quoted(user)), ("realm", quoted(offered)), ("nonce", quoted(nonce)), ("nc", _FIRST)]
        said += [("cnonce", quoted(self._cnonce)), ("digest-uri", quoted(self._uri)), ("maxbuf", b"65536")]
        said += [("response", _proof(key, nonce, self._cnonce, b"AUTHENTICATE:" + self._uri)), ("qop", _AUTH)]
        if len(answer := encode(said)) >= RESPONSE_MAX:
            self._fail("the response to its challenge would be too long")
        return answer

    def accept(self, message: bytes) -> None:
        """Check that the bookie knows the password, too."""
        if self.step is not DigestStep.CHALLENGED:
            self._fail("it says that it knows the password before it has been asked")
        try:
            shown = Directives.parse(message, most=CHALLENGE_MAX).required("rspauth")
        except ValueError as error:
            self._fail(f"it does not show that it knows the password: {error}")
        if not hmac.compare_digest(shown, self._expected):
            self._fail("it does not know the password of this user")
        self.step = DigestStep.DONE

    def _nonce_and_encoding(self, challenge: Directives) -> tuple[bytes, str]:
        """Check the challenge, and that it offers no less than is wanted. Raises ValueError."""
        nonce = challenge.required("nonce")
        if len(nonce) > NONCE_MAX:
            raise ValueError("its nonce is too long")
        if challenge.required("algorithm") != _SESSION:
            raise ValueError("its algorithm is not md5-sess")
        offered = challenge.one("qop")
        if offered is not None and _AUTH not in [word.strip(b" \t") for word in offered.split(b",")]:
            raise ValueError("it does not offer the quality of protection auth")
        charset = challenge.one("charset")
        if charset not in (None, _UTF8):
            raise ValueError("its charset is not utf-8")
        return nonce, "latin-1" if charset is None else "utf-8"

    def _realm(self, challenge: Directives, encoding: str) -> str:
        """The realm in which the password is good. Raises ValueError."""
        offered = [each.decode(encoding) for each in challenge.all("realm")]
        if self._wanted is not None:
            if offered and self._wanted not in offered:
                raise ValueError("it does not offer the realm that is configured")
            return self._wanted
        if len(offered) > 1:
            raise ValueError("it offers several realms, and none is configured")
        return offered[0] if offered else ""

    def _fail(self, reason: str) -> NoReturn:
        self.step = DigestStep.FAILED
        raise AuthenticationError(reason)


def require_name(user: str) -> None:
    """Raise ValueError for what is no user's name here; the hash cannot tell where a name with a colon ends."""
    if not 1 <= len(user) <= NAME_MAX or ":" in user or not user.isprintable():
        raise ValueError(f"a user's name has 1 to {NAME_MAX} characters that can be seen, and no colon")


def _hashed_text(text: str) -> bytes:
    """A text as it is hashed: in ISO 8859-1 if it can be written so, else in UTF-8 (RFC 2831, 2.1.2.1)."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _session_key(known: bytes, nonce: bytes, cnonce: bytes, authzid: bytes | None) -> bytes:
    """H(A1), in hexadecimal."""
    parts = (known, nonce, cnonce) if authzid is None else (known, nonce, cnonce, authzid)
    return _hex(b":".join(parts))


def _proof(key: bytes, nonce: bytes, cnonce: bytes, what: bytes) -> bytes:
    """What shows that either side knows the key; ``what`` (A2) tells the sides apart."""
    return _hex(b":".join((key, nonce, _FIRST, cnonce, _AUTH, _hex(what))))


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()  # the protocol's; a system without MD5 would refuse it


def _hex(data: bytes) -> bytes:
    return _md5(data).hex().encode()
