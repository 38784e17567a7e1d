"""The provider ``sasl``: its files, and over which connections it speaks."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random

import pytest

from bookkeeper.auth.provider import ExchangeResult, Peer, WatchfulProvider
from bookkeeper.auth.provider_options import LOOK_S
from bookkeeper.auth.sasl.providers import SaslClientProvider, SaslServerProvider, nonce
from bookkeeper.auth.sasl.users import user_line
from bookkeeper.errors import AuthenticationError, ConfigError
from bookkeeper.secret import Secret

ENCRYPTED = Peer("192.0.2.1:9", encrypted=True)
CLEAR = Peer("127.0.0.1:9", local=True)


class ByHand:
    """A clock that is set."""

    at = 100.0

    def monotonic(self) -> float:
        return self.at

    def wall_ms(self) -> int:
        return int(self.at * 1000)


def private(path: Path, text: str) -> str:
    """Put a new file in its place."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.rename(path)
    return str(path)


def users(tmp_path: Path, text: str = "") -> str:
    return private(tmp_path / "users", text or user_line("alice", Secret("wonder land"), ["writer"]))


def server(file: str, clock: ByHand | None = None, *, insecure: bool = False) -> SaslServerProvider:
    return SaslServerProvider({"file": file}, Random(1), clock or ByHand(), insecure=insecure)


def client(file: str, *, insecure: bool = False) -> SaslClientProvider:
    return SaslClientProvider({"file": file}, Random(2), {}, insecure=insecure)


async def talk(ours: SaslServerProvider, theirs: SaslClientProvider, peer: Peer = ENCRYPTED) -> ExchangeResult:
    asks, shows = ours.exchange(peer), theirs.exchange(peer)
    challenge = await asks.answer(await shows.first())
    assert challenge.principal is None
    said = await shows.answer(challenge.payload)
    assert said is not None
    result = await asks.answer(said)
    assert await shows.answer(result.payload) is None
    return result


@pytest.mark.rule("X9", "X58")
def test_both_sides_know_each_other_by_their_files(tmp_path: Path) -> None:
    provider = server(users(tmp_path))
    result = asyncio.run(talk(provider, client(private(tmp_path / "me", "alice\nwonder land\n"))))
    assert (result.principal, result.roles) == ("alice", ("writer",))
    assert isinstance(provider, WatchfulProvider) and provider.ended(result.credential) is None


@pytest.mark.rule("X58")
def test_the_clients_word_may_stand_in_the_environment(tmp_path: Path) -> None:
    given = {"BK_SASL_USER": "alice", "BK_SASL_PASSWORD": "wonder land"}
    shows = SaslClientProvider({}, Random(2), given, insecure=False)
    assert asyncio.run(talk(server(users(tmp_path)), shows)).principal == "alice"


@pytest.mark.rule("X9")
def test_it_is_not_spoken_in_clear_not_even_on_this_machine(tmp_path: Path) -> None:
    file, mine = users(tmp_path), private(tmp_path / "me", "alice\nwonder land")
    for side in (server(file), client(mine)):
        with pytest.raises(AuthenticationError, match="unencrypted"):
            side.exchange(CLEAR)
    assert asyncio.run(talk(server(file, insecure=True), client(mine, insecure=True), CLEAR)).principal == "alice"


@pytest.mark.rule("X6", "X15")
def test_changed_users_count_for_new_clients_at_once_and_end_old_ones(tmp_path: Path) -> None:
    clock = ByHand()
    provider = server(users(tmp_path), clock)
    shows = client(private(tmp_path / "me", "alice\nwonder land"))
    held = asyncio.run(talk(provider, shows)).credential
    users(tmp_path, user_line("alice", Secret("another")))
    assert provider.ended(held) is None, "nobody has looked yet"
    with pytest.raises(AuthenticationError):
        clock.at += LOOK_S
        asyncio.run(talk(provider, shows))
    assert provider.ended(held) == "its user has another password or other roles"
    private(tmp_path / "me", "alice\nanother")
    assert asyncio.run(talk(provider, shows)).principal == "alice"
    users(tmp_path, user_line("bob", Secret("x")))
    provider.refresh()
    assert provider.ended(held) == "its user was removed"


@pytest.mark.rule("X6")
def test_a_file_that_cannot_be_used_leaves_the_old_users(tmp_path: Path) -> None:
    clock = ByHand()
    provider, shows = server(users(tmp_path), clock), client(private(tmp_path / "me", "alice\nwonder land"))
    users(tmp_path, "nonsense")
    clock.at += LOOK_S
    assert asyncio.run(talk(provider, shows)).principal == "alice"
    for _ in range(2):  # it is said each time
        with pytest.raises(ConfigError, match="line 1: expected"):
            provider.refresh()


@pytest.mark.rule("X43", "X58")
def test_files_that_are_no_secrets_or_have_another_form_are_refused(tmp_path: Path) -> None:
    file = users(tmp_path)
    os.chmod(file, 0o640)
    with pytest.raises(ConfigError, match="lets others touch it"):
        server(file)
    for text in ("alice", "alice\n\n", "alice\nx\ny", "a:b\nx"):
        with pytest.raises(ConfigError, match="me"):
            client(private(tmp_path / "me", text))
    for options in ({}, {"file": 7}, {"file": "x", "password": "y"}, {"user": "x"}):
        with pytest.raises(ConfigError, match=r"auth\.options"):
            SaslClientProvider(options, Random(1), {}, insecure=False)
        with pytest.raises(ConfigError, match=r"auth\.options"):
            SaslServerProvider(options, Random(1), ByHand(), insecure=False)
    with pytest.raises(ConfigError, match=r"auth\.options\.realm"):
        SaslClientProvider({"realm": 7, "file": "x"}, Random(1), {}, insecure=False)


def test_each_exchange_has_a_nonce_of_its_own() -> None:
    rng = Random(1)
    assert len({nonce(rng) for _ in range(100)}) == 100 and len(nonce(rng)) == 64
