"""Who gets what at which door: every way to knock, every kind of listener, in one table."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.ids import Address, LedgerId
from bookkeeper.ledger import master_key
from bookkeeper.wire import Dialect, Status
from examples.certificates import Authority, Certificate
from tests.bookkeeper.bookie.listeners import Raw, bookie, run

KEY = master_key(b"")
LEDGER = LedgerId(7)
PLUGIN = "gv-test-plugin"
START_TLS = wire.encode_request(wire.StartTls(), Dialect.V3, 1)
PROVIDER = {"auth": {"provider": "tests.bookkeeper.auth.providers:server"}}

SERVED = "served"
REFUSED = "refused"
"""One answer, "not authorized", and the connection is closed."""
CLOSED = "closed"
"""Without an answer."""
NO_TLS = "no TLS"
"""START_TLS is a bad request."""
CLIENT = "client"
"""The client ends it, because of the bookie's certificate."""
DISABLED = "nobody asks"
"""The client that wants to authenticate itself hears that it need not, and is served."""


@dataclass
class Knock:
    """A client of its own making: it does what no client of ours would."""

    address: Address
    authority: Authority
    dialect: Dialect = Dialect.V3
    tls: ssl.SSLContext | None = None
    name: str = "127.0.0.1"
    words: list[bytes] = field(default_factory=list)
    """Tokens to authenticate with before the request."""

    async def knock(self) -> str:
        async with Raw.connect(self.address) as raw:
            if self.tls is not None and (end := await self._encrypt(raw)) is not None:
                return end
            for number, word in enumerate(self.words):
                raw.send(wire.encode_request(wire.Auth(PLUGIN, word), self.dialect, number + 1))
                frame = await raw.frame()
                if frame is None:
                    return CLOSED
                _, reply = wire.decode_reply(frame[4:], self.dialect)
                if reply.status is Status.UNAUTHORIZED:
                    return REFUSED if await raw.frame() is None else "not closed"
                assert isinstance(reply, wire.AuthReply)
                if reply.plugin != PLUGIN:
                    return DISABLED if await self._ask(raw) == SERVED else "odd"
            return await self._ask(raw)

    async def _ask(self, raw: Raw) -> str:
        """Append an entry."""
        raw.send(codec.encode_adds(self.dialect, LEDGER, 0, [b"x"], -1, 0, KEY, 3, txn_base=0)[0])
        frame = await raw.frame()
        if frame is None:
            return CLOSED
        _, reply = wire.decode_reply(frame[4:], self.dialect)
        if reply.status is Status.OK:
            return SERVED
        assert reply.status is Status.UNAUTHORIZED
        return REFUSED if await raw.frame() is None else "not closed"

    async def _encrypt(self, raw: Raw) -> str | None:
        raw.send(START_TLS)
        frame = await raw.frame()
        if frame is None:
            return CLOSED
        _, reply = wire.decode_reply(frame[4:], Dialect.V3)
        if reply.status is not Status.OK:
            return {Status.BAD_REQUEST: NO_TLS}[reply.status]
        assert self.tls is not None
        try:
            await raw.writer.start_tls(self.tls, server_hostname=self.name)
        except ssl.SSLCertVerificationError:
            return CLIENT
        except (ssl.SSLError, ConnectionError):
            return CLOSED
        return None


@dataclass
class House:
    """All listeners, and the certificates to try them with."""

    authority: Authority
    stranger: Authority
    servers: dict[str, BookieServer]
    client: Certificate
    expired: Certificate
    other: Certificate
    foreign: Certificate

    def context(self, made: Certificate | None = None, *, trusts: Authority | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=(trusts or self.authority).ca)
        if made is not None:
            context.load_cert_chain(made.cert, made.key)
        return context

    def old_tls(self) -> ssl.SSLContext:
        """TLS 1.1 and nothing else, with every cipher it ever had."""
        context = self.context()
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        return context


@asynccontextmanager
async def house(directory: Path, patience_s: float = 30.0) -> AsyncIterator[House]:
    authority, stranger = Authority(directory / "ca"), Authority(directory / "stranger")
    good = authority.server()
    elsewhere = authority.server("elsewhere", hosts=["bookie.example.org"])
    expired = authority.server("expired", from_days=-10, days=9)

    def tls(made: Certificate = good, **more: Any) -> dict[str, Any]:
        return {"cert": made.cert, "key": made.key, "handshake_timeout_s": patience_s, **more}

    rules: dict[str, Any] = {"client_ca": authority.ca, "roles": ["writer"]}
    options: dict[str, dict[str, Any]] = {
        "off": {},
        "off + AUTH": {"tls": {"mode": "off", "handshake_timeout_s": patience_s}, **PROVIDER},
        "offered": {"tls": tls(mode="offered")},
        "offered + AUTH": {"tls": tls(mode="offered"), **PROVIDER},
        "required": {"tls": tls()},
        "required + AUTH": {"tls": tls(), **PROVIDER},
        "client certificates": {"tls": tls(**rules)},
        "certificate of another": {"tls": tls(elsewhere)},
        "certificate expired": {"tls": tls(expired)},
    }
    async with AsyncExitStack() as stack:
        servers = {}
        for number, (name, given) in enumerate(options.items()):
            servers[name] = await stack.enter_async_context(
                bookie(directory / f"b{number}", ledger=LEDGER, slow_frame_s=patience_s, **given)
            )
        yield House(
            authority,
            stranger,
            servers,
            client=authority.client("client", units=["0:writer"]),
            expired=authority.client("late", units=["0:writer"], from_days=-10, days=9),
            other=authority.client("other", units=["0:reader"]),
            foreign=stranger.client("client", units=["0:writer"]),
        )


HELLO, RESPONSE = b"hello", b"response"

WAYS: dict[str, Callable[[House], dict[str, Any]]] = {
    "clear, v2": lambda h: {"dialect": Dialect.V2},
    "clear, v3": lambda h: {},
    "TLS, v2": lambda h: {"tls": h.context(), "dialect": Dialect.V2},
    "TLS, v3": lambda h: {"tls": h.context()},
    "TLS with a certificate": lambda h: {"tls": h.context(h.client)},
    "TLS with an expired certificate": lambda h: {"tls": h.context(h.expired)},
    "TLS with a stranger's certificate": lambda h: {"tls": h.context(h.foreign)},
    "TLS with another role": lambda h: {"tls": h.context(h.other)},
    "TLS, trusting a stranger": lambda h: {"tls": h.context(trusts=h.stranger)},
    "TLS 1.1": lambda h: {"tls": h.old_tls()},
    "AUTH in clear, v2": lambda h: {"words": [HELLO, RESPONSE], "dialect": Dialect.V2},
    "AUTH in clear, v3": lambda h: {"words": [HELLO, RESPONSE]},
    "AUTH in TLS": lambda h: {"tls": h.context(h.client), "words": [HELLO, RESPONSE]},
    "AUTH half done": lambda h: {"tls": h.context(h.client), "words": [HELLO]},
    "AUTH half done, clear, v2": lambda h: {"words": [HELLO], "dialect": Dialect.V2},
    "AUTH with a wrong word": lambda h: {"tls": h.context(h.client), "words": [HELLO, b"wrong"]},
}
LISTENERS = (
    "off",
    "off + AUTH",
    "offered",
    "offered + AUTH",
    "required",
    "required + AUTH",
    "client certificates",
    "certificate of another",
    "certificate expired",
)
_s, _r, _c, _n, _x, _d = SERVED, REFUSED, CLOSED, NO_TLS, CLIENT, DISABLED

TABLE: dict[str, tuple[str, ...]] = {
    #                                     off off+A off. off.+A req req+A cert other expired
    "clear, v2":                         (_s, _r, _s, _r, _r, _r, _r, _r, _r),
    "clear, v3":                         (_s, _r, _s, _r, _r, _r, _r, _r, _r),
    "TLS, v2":                           (_n, _n, _s, _r, _s, _r, _c, _x, _x),
    "TLS, v3":                           (_n, _n, _s, _r, _s, _r, _c, _x, _x),
    "TLS with a certificate":            (_n, _n, _s, _r, _s, _r, _s, _x, _x),
    "TLS with an expired certificate":   (_n, _n, _s, _r, _s, _r, _c, _x, _x),
    "TLS with a stranger's certificate": (_n, _n, _s, _r, _s, _r, _c, _x, _x),
    "TLS with another role":             (_n, _n, _s, _r, _s, _r, _r, _x, _x),
    "TLS, trusting a stranger":          (_n, _n, _x, _x, _x, _x, _x, _x, _x),
    "TLS 1.1":                           (_n, _n, _c, _c, _c, _c, _c, _c, _c),
    "AUTH in clear, v2":                 (_d, _s, _d, _s, _c, _c, _c, _c, _c),
    "AUTH in clear, v3":                 (_d, _s, _d, _s, _r, _r, _r, _r, _r),
    "AUTH in TLS":                       (_n, _n, _d, _s, _d, _s, _d, _x, _x),
    "AUTH half done":                    (_n, _n, _d, _r, _d, _r, _d, _x, _x),
    "AUTH half done, clear, v2":         (_d, _r, _d, _r, _c, _c, _c, _c, _c),
    "AUTH with a wrong word":            (_n, _n, _d, _r, _d, _r, _d, _x, _x),
}  # fmt: skip


@pytest.mark.rule("X1", "X2", "X3", "X4", "X5", "X7", "X10", "X11")
def test_every_way_to_knock_at_every_door(tmp_path: Path) -> None:
    async def main() -> dict[str, tuple[str, ...]]:
        async with house(tmp_path) as all_of_them:

            async def knock(way: str, listener: str) -> str:
                address = all_of_them.servers[listener].address
                return await Knock(address, all_of_them.authority, **WAYS[way](all_of_them)).knock()

            return {way: tuple([await knock(way, listener) for listener in LISTENERS]) for way in WAYS}

    found = run(main)
    differences = [
        f"{way} at {listener!r}: {got}, not {expected}"
        for way, row in TABLE.items()
        for listener, got, expected in zip(LISTENERS, found[way], row, strict=True)
        if got != expected
    ]
    assert differences == []


@pytest.mark.rule("X7", "X10")
def test_who_stops_in_the_middle_is_sent_away_everywhere(tmp_path: Path) -> None:
    """Nothing said, START_TLS half said, no handshake after it, half an AUTH message."""
    half = wire.encode_request(wire.Auth(PLUGIN, b"hello"), Dialect.V3, 1)[:-3]

    async def waits(address: Address, said: bytes) -> None:
        async with Raw.connect(address) as raw:
            raw.send(said)
            await raw.rest()

    async def main() -> None:
        async with house(tmp_path, patience_s=1.0) as all_of_them:
            guarded = [server.address for name, server in all_of_them.servers.items() if name != "off"]
            said = (b"", START_TLS[:7], START_TLS, half)
            await asyncio.gather(*(waits(address, words) for address in guarded for words in said))

    run(main)
