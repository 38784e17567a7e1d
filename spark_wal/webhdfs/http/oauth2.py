"""The OAuth2 token endpoint: client credentials in, an access token out (RFC 6749, 4.4). Knows no HTTP library."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote_plus

from bookkeeper.gateways.tokens import TokenBook
from spark_wal.webhdfs.http.parameters import Query

ENDPOINT: Final = "/oauth2/token"
FORM_MAX: Final = 16 * 1024
"""The size of the largest request, in bytes."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The answer, as JSON."""

    status: int
    fields: dict[str, object]
    name: str = ""
    """Who was named: not proven unless the status is 200."""


def refusal(error: str, status: int = 400) -> TokenGrant:
    """Make one of the standard's errors."""
    return TokenGrant(status, {"error": error})


def grant(book: TokenBook, form: bytes, authorization: str | None, now_ms: int) -> TokenGrant:
    """Make an access token for the token that was shown. Answer 401 if it is not valid, and never say why (X11)."""
    if len(form) > FORM_MAX:
        return refusal("invalid_request")
    fields = Query(form.decode("utf-8", "replace"))
    if fields.text("grant_type") != "client_credentials":
        return refusal("unsupported_grant_type")
    name, secret = _client(fields, authorization)
    token = book.exchange(name, secret, now_ms)
    if token is None:
        return replace(refusal("invalid_client", 401), name=name)
    left_s = book.end_of(token) - now_ms // 1000
    fields_given = {"access_token": token.reveal(), "expires_in": left_s, "token_type": "Bearer"}
    return TokenGrant(200, fields_given, name)


def _client(fields: Query, authorization: str | None) -> tuple[str, str]:
    """Read name and secret: from the form, as Hadoop sends them, or from the header."""
    kind, _, value = (authorization or "").partition(" ")
    if kind.lower() == "basic":
        try:
            name, _, secret = b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            return "", ""
        return unquote_plus(name), unquote_plus(secret)
    return fields.text("client_id") or "", fields.text("client_secret") or ""
