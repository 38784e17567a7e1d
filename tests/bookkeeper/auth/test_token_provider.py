"""The provider ``token``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper.auth.provider import ExchangeResult, Peer, WatchfulProvider
from bookkeeper.auth.provider_options import LOOK_S
from bookkeeper.auth.signed_tokens import issue
from bookkeeper.auth.token_file import TokenFile, revoked_line, signing_key_line
from bookkeeper.auth.token_provider import TokenClientProvider, TokenServerProvider
from bookkeeper.errors import AuthenticationError, ConfigError
from tests.bookkeeper.auth.sasl.test_providers import CLEAR, ENCRYPTED, ByHand, private

KEYS = signing_key_line("k1")


def token(end: int = 1_000, text: str = KEYS) -> str:
    return issue(TokenFile.parse(text, "keys"), "etl", 7, end=end, roles=["writer"]).reveal()


async def talk(ours: TokenServerProvider, theirs: TokenClientProvider, peer: Peer = ENCRYPTED) -> ExchangeResult:
    shows = theirs.exchange(peer)
    result = await ours.exchange(peer).answer(await shows.first())
    assert await shows.answer(result.payload) is None
    return result


@pytest.mark.rule("X9")
def test_a_token_is_shown_and_known(tmp_path: Path) -> None:
    provider = TokenServerProvider({"file": private(tmp_path / "keys", KEYS)}, ByHand())
    for shows in (
        TokenClientProvider({"file": private(tmp_path / "mine", token() + "\n")}, {}),
        TokenClientProvider({}, {"BK_TOKEN": token()}),
    ):
        for peer in (ENCRYPTED, CLEAR):
            result = asyncio.run(talk(provider, shows, peer))
            assert (result.principal, result.roles, result.ends_at) == ("etl", ("writer",), 1_000.0)
            assert isinstance(provider, WatchfulProvider) and provider.ended(result.credential) is None


@pytest.mark.rule("X9", "X28")
def test_it_is_shown_and_taken_over_tls_or_on_this_machine_only(tmp_path: Path) -> None:
    far = Peer("192.0.2.1:9")
    for side in (
        TokenServerProvider({"file": private(tmp_path / "keys", KEYS)}, ByHand()),
        TokenClientProvider({}, {"BK_TOKEN": token()}),
    ):
        with pytest.raises(AuthenticationError, match="over TLS"):
            side.exchange(far)


@pytest.mark.rule("X11")
@pytest.mark.parametrize("what", ["nothing", "nonsense", "ended", "by another key of the name"])
def test_every_refusal_is_the_same(tmp_path: Path, what: str) -> None:
    shown = {
        "nothing": b"",
        "nonsense": b"\xff" * 10,
        "ended": token(end=100).encode(),
        "by another key of the name": token(text=signing_key_line("k1")).encode(),
    }[what]
    provider = TokenServerProvider({"file": private(tmp_path / "keys", KEYS)}, ByHand())
    with pytest.raises(AuthenticationError, match=r"^its token is not good, has ended, or was revoked$"):
        asyncio.run(provider.exchange(ENCRYPTED).answer(shown))


@pytest.mark.rule("X6", "X15")
def test_keys_and_revocations_count_without_a_restart(tmp_path: Path) -> None:
    clock = ByHand()
    provider = TokenServerProvider({"file": private(tmp_path / "keys", KEYS)}, clock)
    shows = TokenClientProvider({"file": private(tmp_path / "mine", token())}, {})
    held = asyncio.run(talk(provider, shows)).credential
    more = KEYS + signing_key_line("k2")
    private(tmp_path / "keys", more)
    private(tmp_path / "mine", token(text=more))
    clock.at += LOOK_S
    assert asyncio.run(talk(provider, shows)).principal == "etl", "by the new key"
    private(tmp_path / "keys", more + revoked_line("principal:etl"))
    provider.refresh()
    assert provider.ended(held) == "its token was revoked"
    private(tmp_path / "keys", more)
    provider.refresh()
    clock.at = 1_000.0
    assert provider.ended(held) == "its token has ended"


def test_a_bookie_that_talks_back_is_refused(tmp_path: Path) -> None:
    exchange = TokenClientProvider({}, {"BK_TOKEN": token()}).exchange(ENCRYPTED)
    with pytest.raises(AuthenticationError, match="a message of its own"):
        asyncio.run(exchange.answer(b"x"))


@pytest.mark.parametrize("text", ["", "a b", "ä", "x" * 3_000])
def test_what_is_no_token_is_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="must be one token"):
        TokenClientProvider({"file": private(tmp_path / "mine", text)}, {})


def test_options(tmp_path: Path) -> None:
    for options in ({}, {"file": ""}, {"file": "x", "token": "y"}):
        with pytest.raises(ConfigError, match=r"auth\.options"):
            TokenServerProvider(options, ByHand())
        with pytest.raises(ConfigError, match=r"auth\.options"):
            TokenClientProvider(options, {})
    with pytest.raises(ConfigError, match="cannot be read"):
        TokenServerProvider({"file": str(tmp_path / "nothing")}, ByHand())
