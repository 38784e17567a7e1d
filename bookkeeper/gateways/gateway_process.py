"""A gateway as a process: its settings, its limits, the signals that end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from bookkeeper.bookie.health.own_lag import OwnLag, watch_own_lag
from bookkeeper.errors import BookKeeperError, ConfigError, in_words
from bookkeeper.gateways.command_options import raise_descriptors
from bookkeeper.program_log import begin_log
from bookkeeper.real import NotifySocket, SystemClock, names_secrets, no_core_dumps, run

if TYPE_CHECKING:
    from bookkeeper.gateways.access_control import AccessConfig, AccessControl


class GatewayLimits(Protocol):
    """What a gateway may be asked at a time."""

    @property
    def connections_max(self) -> int: ...


class ServedConfig(Protocol):
    """The settings of a gateway, as far as its process needs them."""

    @property
    def access(self) -> AccessConfig: ...

    @property
    def limits(self) -> GatewayLimits: ...


class GatewayService(AbstractAsyncContextManager[Any], Protocol):
    """A gateway that serves while it is entered."""

    access: AccessControl | None


Config = TypeVar("Config", bound=ServedConfig)
Service = TypeVar("Service", bound=GatewayService)


def run_gateway(
    configure: Callable[[], Config],
    service_for: Callable[[Config], Service],
    greeting: Callable[[Config, Service], str],
    *,
    failures: tuple[type[Exception], ...],
    farewell: str = "",
) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP makes the gateway look for changed files of its access rules at once.

    Args:
        configure: makes the settings from the options that were given.
        greeting: what is printed when it serves; ``farewell`` is printed when it begins to end.
        failures: errors besides BookKeeperError and OSError that end it with a line.

    Raises:
        click.ClickException: the settings cannot be, or the gateway failed; it says why.
    """
    begin_log(logging.INFO)
    try:
        config = configure()
    except ConfigError as error:
        raise click.ClickException(in_words(error)) from error
    if config.access.tls is not None or config.access.token_file is not None or names_secrets(os.environ):
        no_core_dumps()
    raise_descriptors(config.limits.connections_max)

    expected: tuple[type[Exception], ...] = (BookKeeperError, OSError, *failures)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            run(_serve(config, service_for, greeting, farewell))
    except expected as error:
        raise click.ClickException(in_words(error)) from error


async def _serve(
    config: Config, service_for: Callable[[Config], Service], greeting: Callable[[Config, Service], str], farewell: str
) -> None:
    """Serve until a signal ends it."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    supervisor = NotifySocket.of_this_process()
    supervisor.watch(loop)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    service = service_for(config)

    def refresh() -> None:
        if service.access is not None:
            service.access.refresh()

    loop.add_signal_handler(signal.SIGHUP, refresh)  # without a handler SIGHUP would end a gateway that is starting
    click.echo("starting: session with the cluster", err=True)
    supervisor.starting("session with the cluster")
    clock = SystemClock()
    lag = OwnLag(clock.monotonic(), clock.wall_ms())
    watching = loop.create_task(watch_own_lag(lag, clock, logging.getLogger(__name__)), name="own lag")
    try:
        async with service:
            serves = greeting(config, service)
            click.echo(serves)
            supervisor.ready(serves)
            await stop.wait()
            supervisor.stopping()
            if farewell:
                click.echo(farewell)
    finally:
        watching.cancel()
