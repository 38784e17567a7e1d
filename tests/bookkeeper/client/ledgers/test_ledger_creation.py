"""What a new ledger may be, and that its id is its own."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from bookkeeper import BookKeeper, sync
from bookkeeper.access.ownership import OWNER_KEY
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.ledgers.ledger_creation import METADATA_MAX, LedgerOptions, LedgerSpec
from bookkeeper.errors import ConfigError, LedgerExistsError
from bookkeeper.ledger import DigestType
from tests.bookkeeper.client.scripted import ScriptedCluster

FINE: dict[str, Any] = {
    "ensemble": 3,
    "write_quorum": 3,
    "ack_quorum": 2,
    "password": b"",
    "digest": "crc32c",
    "custom_metadata": {"app": b"x"},
    "ledger_id": None,
    "when_short": "fail",
    "deferred_sync": False,
}


@pytest.mark.rule("Q5")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"ensemble": 2}, "ensemble >= write_quorum >= ack_quorum >= 1"),
        ({"ack_quorum": 0}, "ensemble >= write_quorum >= ack_quorum >= 1"),
        ({"digest": "md5"}, "digest must be one of .*, not md5"),
        ({"when_short": "hope"}, "when_short must be one of fail, .*, not hope"),
        ({"password": "secret"}, "password must be bytes, not str"),
        ({"custom_metadata": {"app": "x"}}, "not str to str"),
        ({"custom_metadata": {7: b"x"}}, "must map str to bytes, not int"),
        ({"custom_metadata": {"app": bytes(METADATA_MAX - 2)}}, "may have 786432 bytes together, not 7864"),
        ({"password": bytes(METADATA_MAX + 1)}, "may have 786432 bytes together, not 7864"),
        ({"ledger_id": -1}, "0 to 2\\*\\*63 - 1, not -1"),
        ({"ledger_id": 1 << 63}, "not 9223372036854775808"),
        ({"ledger_id": "7"}, "not '7'"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_is_done(wrong: dict[str, Any], text: str) -> None:
    LedgerSpec(**FINE)
    with pytest.raises(ConfigError, match=text):
        LedgerSpec(**{**FINE, **wrong})


@pytest.mark.rule("X19")
def test_tamper_evidence_is_a_digest_with_a_key_and_no_digest_is_asked_for_by_name() -> None:
    keyed = FINE | {"tamper_evident": True, "password": b"p"}
    assert LedgerSpec(**keyed).digest_type() is DigestType.HMAC
    assert LedgerSpec(**keyed | {"digest": "hmac"}).digest_type() is DigestType.HMAC
    unsafe = FINE | {"digest": "dummy", "unsafe_without_digest": True}
    assert LedgerSpec(**unsafe).digest_type() is DigestType.DUMMY
    for wrong, text in (
        (keyed | {"password": b""}, "tamper_evident=True needs a password"),
        (keyed | {"digest": "crc32"}, 'tamper_evident=True means digest="hmac", and digest="crc32" was given'),
        (FINE | {"digest": "dummy"}, 'digest="dummy" checks nothing: .* unsafe_without_digest=True as well'),
        (FINE | {"unsafe_without_digest": True}, 'belongs to digest="dummy"'),
        (FINE | {"tamper_evident": 1}, "tamper_evident must be True or False, not 1"),
        (FINE | {"unsafe_without_digest": "yes"}, "unsafe_without_digest must be True or False"),
    ):
        with pytest.raises(ConfigError, match=text):
            LedgerSpec(**wrong)


@pytest.mark.rule("W11")
def test_deferred_sync_needs_v3_and_every_bookie() -> None:
    LedgerSpec(**{**FINE, "deferred_sync": True}).check_with(ClientConfig())
    with pytest.raises(ConfigError, match="v2 cannot ask"):
        LedgerSpec(**{**FINE, "deferred_sync": True}).check_with(ClientConfig(protocol="v2"))
    with pytest.raises(ConfigError, match="every bookie"):
        LedgerSpec(**{**FINE, "deferred_sync": True, "when_short": "name_absent"}).check_with(ClientConfig())


@pytest.mark.rule("M5", "M6")
def test_of_many_who_want_one_id_one_gets_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            wanting = [client.create_ledger(ledger_id=42) for client in (bk, other) for _ in range(5)]
            made: list[Any] = await asyncio.gather(*wanting, return_exceptions=True)
            (winner,) = [one for one in made if not isinstance(one, BaseException)]
            assert [type(one) for one in made if one is not winner] == [LedgerExistsError] * 9
            assert winner.id == 42
            assert (await bk.create_ledger()).id != 42

    ScriptedCluster().run(story)


@pytest.mark.rule("X59")
def test_the_password_of_a_new_ledger_does_not_show() -> None:
    assert "planted" not in repr(LedgerSpec(**FINE | {"password": b"planted"}))


def test_the_keywords_of_a_new_ledger_are_those_of_its_spec() -> None:
    assert get_type_hints(LedgerOptions) == get_type_hints(LedgerSpec)


@pytest.mark.parametrize("method", [BookKeeper.create_ledger, sync.BookKeeper.create_ledger])
def test_help_shows_the_keywords_with_their_defaults(method: Any) -> None:
    shown = inspect.signature(method).parameters
    wanted = {option.name: option.default for option in fields(LedgerSpec)} | {"advanced": False}
    assert next(iter(shown)) == "self"
    assert {name: shown[name].default for name in list(shown)[1:]} == wanted
    assert {shown[name].kind for name in wanted} == {inspect.Parameter.KEYWORD_ONLY}


def test_a_keyword_that_there_is_not_is_refused_by_its_name() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            wrong: Any = {"ensembel": 3}
            with pytest.raises(TypeError, match=r"create_ledger\(\) got an unexpected keyword argument 'ensembel'"):
                await bk.create_ledger(**wrong)

    ScriptedCluster().run(story)


def test_an_owner_is_named_in_the_custom_metadata() -> None:
    """The ledger's own, else the client's; never two."""
    assert LedgerSpec().custom(None) == {}
    assert LedgerSpec(owner="streams:app/x").custom("ledgers:me") == {OWNER_KEY: b"streams:app/x"}
    assert LedgerSpec(custom_metadata={"k": b"v"}).custom("ledgers:me") == {"k": b"v", OWNER_KEY: b"ledgers:me"}
    named = {OWNER_KEY: b"ledgers:etl"}
    assert LedgerSpec(custom_metadata=named).custom("ledgers:me") == named
    assert LedgerSpec(custom_metadata=named, owner="ledgers:etl").custom(None) == named
    with pytest.raises(ConfigError, match="give one of them"):
        LedgerSpec(custom_metadata=named, owner="ledgers:me")
    with pytest.raises(ConfigError, match="owns no ledger"):
        LedgerSpec(owner="cluster")
    with pytest.raises(ConfigError, match="no resource"):
        ClientConfig(owner="me")
