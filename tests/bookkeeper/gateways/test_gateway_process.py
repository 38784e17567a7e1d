"""A gateway's process: signals end it or make it look again, and what it cannot do is one line."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

import click
import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.gateways import gateway_process
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.gateway_process import run_gateway
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.real import memory
from tests.bookkeeper.supervised import supervisor


class _NoRoomError(Exception):
    """What a service of another package raises."""


@dataclass(frozen=True)
class _Config:
    access: AccessConfig = field(default_factory=AccessConfig)
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


class _Service:
    """It sends its own process these signals, one after the other."""

    def __init__(self, *signals: signal.Signals, fails: Exception | None = None) -> None:
        self.looked = 0
        self.ended = False
        self.access: Any = SimpleNamespace(refresh=self._refresh)
        self._signals = signals
        self._fails = fails

    def _refresh(self) -> None:
        self.looked += 1

    async def __aenter__(self) -> Self:
        if self._fails is not None:
            raise self._fails
        for number in self._signals:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
def handlers() -> Any:
    """Those of this process, put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_gateway_in_good_order(end: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    service = _Service(signal.SIGHUP, signal.SIGHUP, end)
    run_gateway(_Config, lambda _: service, lambda *_: "it serves", failures=(), farewell="it ends")
    assert service.ended
    assert service.looked == 2
    assert capsys.readouterr().out == "it serves\nit ends\n"


def test_a_supervisor_hears_that_the_gateway_serves_and_that_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with supervisor() as systemd:
        monkeypatch.setenv("NOTIFY_SOCKET", systemd.path)
        run_gateway(_Config, lambda _: _Service(signal.SIGTERM), lambda *_: "it serves", failures=())
        assert "NOTIFY_SOCKET" not in os.environ
        assert systemd.until("STATUS=it serves") == ["STATUS=starting: session with the cluster", "READY=1"]
        assert systemd.until("STOPPING=1") == ["STOPPING=1"]


@pytest.mark.parametrize("error", [OSError(98, "Address already in use", "h:1"), _NoRoomError("there is no room")])
def test_a_gateway_that_fails_says_it_in_a_line(error: Exception) -> None:
    with pytest.raises(click.ClickException) as told:
        run_gateway(_Config, lambda _: _Service(fails=error), lambda *_: "", failures=(_NoRoomError,))
    assert "Errno" not in told.value.message
    assert told.value.__cause__ is error


def test_what_nobody_expected_keeps_its_traceback() -> None:
    with pytest.raises(_NoRoomError):
        run_gateway(_Config, lambda _: _Service(fails=_NoRoomError("bug")), lambda *_: "", failures=())


def test_settings_that_cannot_be_are_refused_before_anything_starts() -> None:
    def configure() -> _Config:
        raise ConfigError("lease_s must be above zero")

    with pytest.raises(click.ClickException, match="lease_s must be above zero"):
        run_gateway(configure, lambda _: pytest.fail("it started"), lambda *_: "", failures=())


@pytest.mark.rule("X60")
@pytest.mark.parametrize(
    ("access", "environment", "secret"),
    [
        (AccessConfig(), {}, False),
        (AccessConfig(token_file="tokens"), {}, True),
        (AccessConfig(tls=ServerTlsFiles(certificate="c", key="k")), {}, True),
        (AccessConfig(), {"BK_TLS_KEY": "k"}, True),
    ],
)
def test_a_gateway_with_keys_or_tokens_leaves_no_core_file(
    access: AccessConfig, environment: dict[str, str], secret: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cause: a gateway only set the limit of core files, which the kernel passes over when a program takes them, and
    other processes of the user could read its memory.
    """
    for name in memory.SECRETS:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    dumps = []
    monkeypatch.setattr(gateway_process, "no_core_dumps", lambda: dumps.append("off"))
    service = _Service(signal.SIGTERM)
    run_gateway(lambda: _Config(access), lambda _: service, lambda *_: "", failures=())
    assert dumps == (["off"] if secret else [])
