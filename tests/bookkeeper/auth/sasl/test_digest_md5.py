"""The exchange, against what Apache's halves said to each other, the RFC's example, and everything that is wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.auth.sasl.digest_md5 import (
    NONCE_S,
    REALM,
    DigestClient,
    DigestServer,
    DigestStep,
    require_name,
    user_hash,
)
from bookkeeper.auth.sasl.directives import Directives
from bookkeeper.errors import AuthenticationError
from bookkeeper.secret import Secret

CAPTURED: dict[str, Any] = json.loads((Path(__file__).parents[3] / "vectors" / "sasl.json").read_text())
EXCHANGES: dict[str, dict[str, Any]] = {each["name"]: each for each in CAPTURED["exchanges"]}
NONCE, CNONCE = b"n" * 64, b"c" * 64
PASSWORD = Secret("wonder land")


def hash_of(name: str) -> bytes | None:
    password = CAPTURED["users"].get(name)
    return None if password is None else user_hash(name, REALM, Secret(password))


def messages(name: str) -> list[bytes]:
    return [bytes.fromhex(each["bytes"]) for each in EXCHANGES[name]["messages"]]


def directive(message: bytes, name: str) -> bytes:
    return Directives.parse(message, most=4096).required(name)


def challenged(nonce: bytes = NONCE) -> DigestServer:
    server = DigestServer(nonce)
    server.challenge(b"", 0.0)
    return server


def response(user: str = "alice", password: Secret = PASSWORD) -> bytes:
    return DigestClient(user, password, CNONCE).respond(DigestServer(NONCE).challenge(b"", 0.0))


@pytest.mark.rule("X9")
@pytest.mark.parametrize("name", [name for name, each in EXCHANGES.items() if each["accepted"]])
def test_javas_client_is_known_and_answered_as_by_javas_bookie(name: str) -> None:
    _, challenge, said, accepted = messages(name)
    server = challenged(directive(challenge, "nonce"))
    verified = server.verify(said, hash_of, 1.0)
    assert verified.user == EXCHANGES[name]["user"] and server.step is DigestStep.DONE
    assert verified.reply == accepted, "byte for byte"


@pytest.mark.rule("X9")
@pytest.mark.parametrize("name", [name for name, each in EXCHANGES.items() if each["accepted"]])
def test_our_client_answers_javas_challenge_as_its_client_does(name: str) -> None:
    """Only that ours leaves out the authzid: the response differs for that, and the rest is the same."""
    each = EXCHANGES[name]
    _, challenge, said, _ = messages(name)
    client = DigestClient(each["user"], Secret(each["password"]), directive(said, "cnonce"))
    answer = client.respond(challenge)
    ours = Directives.parse(answer, most=4096)
    theirs = Directives.parse(said, most=4096)
    for one in ("charset", "username", "realm", "nonce", "nc", "cnonce", "digest-uri", "maxbuf", "qop"):
        assert ours.one(one) == theirs.one(one), one
    assert challenged(directive(challenge, "nonce")).verify(answer, hash_of, 1.0).user == each["user"]


@pytest.mark.rule("X11")
@pytest.mark.parametrize("name", [name for name, each in EXCHANGES.items() if not each["accepted"]])
def test_whom_javas_bookie_refuses_ours_refuses_and_the_reason_is_one(name: str) -> None:
    _, challenge, said = messages(name)
    server = challenged(directive(challenge, "nonce"))
    with pytest.raises(AuthenticationError, match="no such user, or the password is wrong") as caught:
        server.verify(said, hash_of, 1.0)
    assert caught.value.claimed == EXCHANGES[name]["user"] and server.step is DigestStep.FAILED


def test_the_example_of_the_rfc() -> None:
    """RFC 2831, 4; the realm and the service are those of its IMAP server."""
    realm, uri = "elwood.innosoft.com", b"imap/elwood.innosoft.com"
    challenge = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
    client = DigestClient("chris", Secret("secret"), b"OA6MHXh6VqTrRk", uri=uri)
    said = client.respond(challenge)
    assert directive(said, "response") == b"d388dad90d4bbd760a152321f2143af7"
    server = DigestServer(b"OA6MG9tEQGm2hh", realm=realm, uri=uri)
    server.challenge(b"", 0.0)
    verified = server.verify(said, lambda user: user_hash(user, realm, Secret("secret")), 0.0)
    assert verified.reply == b"rspauth=ea40f60335c427b5527b84dbabcdfffd"
    client.accept(verified.reply)
    assert client.step is DigestStep.DONE


def test_ours_and_ours() -> None:
    server, client = DigestServer(NONCE), DigestClient("ωmega", Secret("ключ"), CNONCE)
    client.accept(server.verify(client.respond(server.challenge(b"", 5.0)), hash_of, 5.0 + NONCE_S).reply)
    assert (server.step, client.step) == (DigestStep.DONE, DigestStep.DONE)


@pytest.mark.rule("X9")
def test_a_nonce_is_good_once_and_not_for_long() -> None:
    said = response()
    server = challenged()
    server.verify(said, hash_of, 1.0)
    with pytest.raises(AuthenticationError, match="a second one"):
        server.verify(said, hash_of, 1.0)
    with pytest.raises(AuthenticationError, match="another nonce"):  # replayed to another exchange
        challenged(b"m" * 64).verify(said, hash_of, 1.0)
    with pytest.raises(AuthenticationError, match="more than 60 s"):
        challenged().verify(said, hash_of, NONCE_S + 0.1)
    with pytest.raises(AuthenticationError, match="without a challenge"):
        DigestServer(NONCE).verify(said, hash_of, 1.0)


@pytest.mark.rule("X9")
def test_a_server_that_has_refused_takes_nothing_more() -> None:
    server = challenged()
    with pytest.raises(AuthenticationError):
        server.verify(response(password=Secret("guess")), hash_of, 1.0)
    with pytest.raises(AuthenticationError, match="a second one"):
        server.verify(response(), hash_of, 1.0)


@pytest.mark.parametrize("message", [b"x", response()])
def test_an_exchange_begins_with_nothing(message: bytes) -> None:
    with pytest.raises(AuthenticationError, match="in the middle"):
        DigestServer(NONCE).challenge(message, 0.0)
    server = challenged()
    with pytest.raises(AuthenticationError, match="in the middle"):
        server.challenge(b"", 0.0)


def changed(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(said: bytes) -> bytes:
        assert said.count(old) >= 1
        return said.replace(old, new)

    return change


@pytest.mark.rule("X9", "X40")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed(b"nc=00000001", b"nc=00000002"), "not the first one"),
        (changed(b"qop=auth", b"qop=auth-conf"), "quality of protection"),
        (changed(b"qop=auth", b"qop=auth-int"), "quality of protection"),
        (changed(b"bookkeeper/bookkeeper", b"bookkeeper/other"), "another service"),
        (changed(b'realm="bookkeeper"', b'realm="other"'), "another realm"),
        (changed(b'realm="bookkeeper",', b""), "another realm"),
        (changed(b"charset=utf-8", b"charset=utf-16"), "charset"),
        (changed(b'username="alice"', b'username="\xff"'), "character set"),
        (changed(b'username="alice"', b'username="a:b"'), "user's name"),
        (changed(b'username="alice"', b'username="' + b"a" * 257 + b'"'), "user's name"),
        (changed(b'username="alice"', b'username=""'), "no username"),
        (changed(b'username="alice",', b""), "no username"),
        (changed(b'username="alice"', b'username="alice",username="alice"'), "username 2 times"),
        (changed(b"response=", b"response=0,x="), "another form"),
        (changed(b"response=", b"response=A"), "another form"),
        (changed(CNONCE, b"c" * 257), "cnonce is too long"),
        (changed(b"maxbuf=65536", b"maxbuf=lots"), "maxbuf"),
        (changed(b"maxbuf=65536", b"cipher=rc4"), "cipher"),
        (changed(b"qop=auth", b'qop=auth,authzid="root"'), "somebody else"),
        (changed(b"qop=auth", b'qop=auth,authzid="\xff"'), "character set"),
        (changed(b"qop=auth", b"qop=auth,x=" + b"y" * 4096), "bytes"),
        (changed(b"nonce=", b"nonce"), "cannot be read"),
    ],
)
def test_a_response_that_is_not_exactly_right_is_refused(change: Callable[[bytes], bytes], why: str) -> None:
    challenged().verify(response(), hash_of, 1.0)
    with pytest.raises(AuthenticationError, match=why):
        challenged().verify(change(response()), hash_of, 1.0)


def test_an_authzid_is_part_of_the_proof() -> None:
    with pytest.raises(AuthenticationError, match="password is wrong"):
        challenged().verify(changed(b"qop=auth", b'qop=auth,authzid="alice"')(response()), hash_of, 1.0)


def test_without_a_charset_names_are_in_iso_8859_1() -> None:
    client = DigestClient("müller", Secret("schlüssel"), CNONCE)
    said = client.respond(b'realm="bookkeeper",nonce="%b",algorithm=md5-sess' % NONCE)
    assert b"charset" not in said and 'username="müller"'.encode("latin-1") in said
    assert challenged().verify(said, hash_of, 1.0).user == "müller"
    with pytest.raises(AuthenticationError, match="character set"):
        DigestClient("ωmega", Secret("x"), CNONCE).respond(b'nonce="x",algorithm=md5-sess')


@pytest.mark.rule("X9")
@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b'realm="bookkeeper",nonce="x"', "no algorithm"),
        (b'nonce="x",algorithm=md5', "not md5-sess"),
        (b'nonce="x",algorithm=md5-sess,algorithm=md5-sess', "algorithm 2 times"),
        (b"algorithm=md5-sess", "no nonce"),
        (b'nonce="x",nonce="y",algorithm=md5-sess', "nonce 2 times"),
        (b'nonce="' + b"x" * 257 + b'",algorithm=md5-sess', "nonce is too long"),
        (b'nonce="x",algorithm=md5-sess,qop="auth-int,auth-conf"', "quality of protection"),
        (b'nonce="x",algorithm=md5-sess,qop=""', "quality of protection"),
        (b'nonce="x",algorithm=md5-sess,charset=latin', "charset"),
        (b'nonce="x",algorithm=md5-sess,realm="a",realm="b"', "several realms"),
        (b'nonce="x",algorithm=md5-sess,y=' + b"z" * 2048, "bytes"),
        (b"", "no nonce"),
    ],
)
def test_a_challenge_that_offers_less_is_refused(challenge: bytes, why: str) -> None:
    client = DigestClient("alice", PASSWORD, CNONCE)
    with pytest.raises(AuthenticationError, match=why):
        client.respond(challenge)
    assert client.step is DigestStep.FAILED
    with pytest.raises(AuthenticationError, match="again"):
        client.respond(b'nonce="x",algorithm=md5-sess')


def test_a_realm_that_is_configured_is_taken_if_it_is_offered() -> None:
    offers = b'nonce="x",algorithm=md5-sess,realm="a",realm="b"'
    assert directive(DigestClient("alice", PASSWORD, CNONCE, realm="b").respond(offers), "realm") == b"b"
    with pytest.raises(AuthenticationError, match="does not offer the realm"):
        DigestClient("alice", PASSWORD, CNONCE, realm="c").respond(offers)


@pytest.mark.rule("X10a")
@pytest.mark.parametrize("reply", [b"", b"rspauth=" + b"0" * 32, b"rspauth", b"x=y", b"rspauth=a,rspauth=b"])
def test_a_bookie_that_does_not_know_the_password_is_refused(reply: bytes) -> None:
    client = DigestClient("alice", PASSWORD, CNONCE)
    client.respond(challenged_bytes())
    with pytest.raises(AuthenticationError, match="know"):
        client.accept(reply)
    assert client.step is DigestStep.FAILED


def test_a_bookie_cannot_be_accepted_before_it_was_asked() -> None:
    with pytest.raises(AuthenticationError, match="before it has been asked"):
        DigestClient("alice", PASSWORD, CNONCE).accept(b"rspauth=" + b"0" * 32)


def challenged_bytes() -> bytes:
    return DigestServer(NONCE).challenge(b"", 0.0)


@pytest.mark.rule("X11")
def test_a_user_who_is_not_known_is_refused_though_he_knows_what_nobody_has() -> None:
    """The stand-in for an unknown user's hash opens nothing."""
    with pytest.raises(AuthenticationError, match="no such user"):
        challenged().verify(response("mallory"), lambda user: None, 1.0)
    key = md5(b"\0" * 16 + b":" + NONCE + b":" + CNONCE)
    proof = md5(b":".join((key, NONCE, b"00000001", CNONCE, b"auth", md5(b"AUTHENTICATE:bookkeeper/bookkeeper"))))
    said = response("mallory")
    forged = said.replace(directive(said, "response"), proof)
    with pytest.raises(AuthenticationError, match="no such user"):
        challenged().verify(forged, lambda user: None, 1.0)
    assert challenged().verify(forged, lambda user: b"\0" * 16, 1.0).user == "mallory", "it is what nobody has"


def md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "a" * 257])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="user's name"):
        require_name(name)


@pytest.mark.parametrize("user", ["", "a:b", "a\nb", "x" * 1000])
def test_a_client_whose_name_is_none_says_so_before_it_sends_anything(user: str) -> None:
    with pytest.raises(ValueError, match="and no colon"):
        DigestClient(user, Secret("secret"), CNONCE)
