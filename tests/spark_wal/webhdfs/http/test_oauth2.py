"""Over the wire: test_listener."""

from __future__ import annotations

import base64
from urllib.parse import urlencode

import pytest

from bookkeeper.auth.token_file import signing_key_line
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.tokens import TokenBook, new_token, token_line
from spark_wal.webhdfs.http.oauth2 import FORM_MAX, grant

TOKEN = new_token()
BOOK = TokenBook.parse(signing_key_line("k") + token_line("alice", TOKEN), "tokens")


def form(**fields: str) -> bytes:
    return urlencode({"grant_type": "client_credentials", **fields}).encode()


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.rule("X9")
@pytest.mark.parametrize(
    ("body", "header"),
    [
        (form(client_id="alice", client_secret=TOKEN.reveal()), None),
        (form(client_id="alice", client_secret=TOKEN.reveal()), "Bearer x"),
        (form(), basic(f"alice:{TOKEN.reveal()}")),
    ],
    ids=["form", "form beside another header", "header"],
)
def test_a_token_is_exchanged_from_the_form_or_the_header(body: bytes, header: str | None) -> None:
    given = grant(BOOK, body, header, 0)
    assert given.status == 200
    assert BOOK.owner(str(given.fields["access_token"]), 0) == Caller("alice")


@pytest.mark.rule("X11")
@pytest.mark.parametrize(
    ("body", "header"),
    [
        (form(), None),
        (form(client_id="alice"), None),
        (form(client_id="bob", client_secret=TOKEN.reveal()), None),
        (form(), basic("alice:x")),
        (form(), basic("alice")),
        (form(), "Basic ???"),
        (form(), "Basic /w=="),
    ],
    ids=["nothing", "no secret", "another name", "wrong", "no colon", "no base64", "no text"],
)
def test_whatever_is_wrong_the_answer_is_one(body: bytes, header: str | None) -> None:
    given = grant(BOOK, body, header, 0)
    assert (given.status, given.fields) == (401, {"error": "invalid_client"})


def test_other_requests_are_told_what_they_are() -> None:
    assert grant(BOOK, form(grant_type="password"), None, 0).fields == {"error": "unsupported_grant_type"}
    assert grant(BOOK, b"", None, 0).fields == {"error": "unsupported_grant_type"}
    assert grant(BOOK, b"x" * (FORM_MAX + 1), None, 0).fields == {"error": "invalid_request"}
