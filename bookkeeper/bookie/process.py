"""One bookie as a process: until a signal comes, or its disk fails."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final, Protocol

import click

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.control.bookie_commands import commands_of
from bookkeeper.bookie.control.bookie_control import SOCKET, BookieControl, Send
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.bookie.start.bookie_start import STORE_LOST
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.ids import Address
from bookkeeper.meta import Metadata
from bookkeeper.seams import Seams, Supervisor
from bookkeeper.storage.engine import EngineState

log = logging.getLogger(__name__)

EXIT_DISK: Final = 74
"""The disk failed."""
EXIT_METADATA: Final = 75
"""The metadata store does not answer."""
EXIT_CONFIG: Final = 78
"""The configuration or the directory is not right."""


AUTORECOVERY: Final = "bookkeeper.autorecovery.inside"
"""The module on a higher floor that repairs what is under-replicated, loaded when it is asked for."""

HTTP_API: Final = "bookkeeper.http_api.inside"
"""The module on a higher floor that serves the HTTP administration API, loaded when it is asked for."""

AGAIN_S: Final = 1.0
"""Seconds before a start that has lost its session is repeated."""
REMINDER_S: Final = 3600.0
"""Seconds between two warnings that the bookie is insecure."""


def _remind(loop: asyncio.AbstractEventLoop, text: str) -> None:
    """Warn now and every hour, as long as the loop runs."""
    log.warning(text)
    loop.call_later(REMINDER_S, _remind, loop, text)


class _Healer(Protocol):
    async def stop(self) -> None: ...


class _Api(Protocol):
    @property
    def address(self) -> Address: ...
    async def stop(self) -> None: ...


class _Listener(Protocol):
    def close(self) -> None: ...


ListenControl = Callable[[str, Callable[[bytes, Send], Awaitable[None]]], Awaitable[_Listener]]
"""Listens at a path for commands; see :func:`bookkeeper.real.unix_socket.listen_unix`."""


async def serve(
    config: BookieConfig,
    seams: Seams,
    give_back_memory: Callable[[], object] = lambda: None,
    listen_control: ListenControl | None = None,
    supervisor: Supervisor | None = None,
) -> int:
    """Run one bookie until a signal comes or its disk fails. Returns the process's exit code."""
    loop = asyncio.get_running_loop()
    if supervisor is not None:
        supervisor.watch(loop)
    if config.http_api.listen:
        import_module(HTTP_API).check(config.http_api, seams)
    server, metadata = await started(config, seams, give_back_memory, supervisor)
    try:
        api = await _serve_api(server, metadata, config, seams)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):  # before anyone is told that it serves, and stops it
            loop.add_signal_handler(number, stop.set)
        http = f", http://{server.http_address}" if server.http_address else ""
        admin = f", HTTP API http://{api.address}" if api is not None else ""
        serves = f"bookie {server.bookie_id} serves at {server.address}{http}{admin}"
        click.echo(serves)
        if supervisor is not None:
            supervisor.ready(serves)
        if config.insecure:
            _remind(loop, f"insecure: everyone who reaches {server.address} may read and write")
        healer = await _heal(server, metadata, config, seams) if config.autorecovery else None
        control = await _take_commands(server, config, listen_control) if listen_control is not None else None
        stopped = asyncio.ensure_future(stop.wait())
        failed = asyncio.ensure_future(server.run_until_failure())
        await asyncio.wait([stopped, failed], return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            what = "the disk failed" if server.engine.state is EngineState.FAILED else "the bookie ends"
            click.echo(f"{what}: {failed.result()}", err=True)
            return EXIT_DISK
        failed.cancel()
        if supervisor is not None:
            supervisor.stopping()
        if control is not None:
            control.close()
        if healer is not None:
            await healer.stop()
        if api is not None:
            await api.stop()
        await server.stop()
        return 0
    finally:
        await metadata.close()


async def started(
    config: BookieConfig,
    seams: Seams,
    give_back_memory: Callable[[], object] = lambda: None,
    supervisor: Supervisor | None = None,
) -> tuple[BookieServer, Metadata]:
    """Start a bookie. A start that loses its session with the metadata store is repeated, with a new session, as long
    as the store answers: on a slow machine the first start may take longer than a session lasts, and each goes on
    where the one before it stopped.

    Raises:
        MetadataUnavailableError: the store does not answer at all.
        BookKeeperError, OSError: as :meth:`BookieServer.start`.
    """

    def report_stage(stage: str) -> None:
        click.echo(f"starting: {stage}", err=True)
        if supervisor is not None:
            supervisor.starting(stage)

    while True:
        report_stage("session with the metadata store")
        metadata = await Metadata.connect(config.metadata_uri, seams, session_s=config.metadata_session_s)
        server = BookieServer(config, seams, metadata)
        server.give_back_memory, server.report_stage = give_back_memory, report_stage
        # By itself this signal would end a bookie that is starting.
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.reload)
        try:
            await server.start()
        except STORE_LOST as error:
            await metadata.close()
            log.warning("the start lost its session with the metadata store (%s): it is repeated", in_words(error))
            await asyncio.sleep(AGAIN_S)
        except BaseException:
            await metadata.close()
            raise
        else:
            return server, metadata


async def _heal(server: BookieServer, metadata: Metadata, config: BookieConfig, seams: Seams) -> _Healer:
    healer: _Healer = await import_module(AUTORECOVERY).InsideAutorecovery.of_bookie(
        str(server.bookie_id), metadata, config, seams, server.metrics
    )
    return healer


async def _serve_api(server: BookieServer, metadata: Metadata, config: BookieConfig, seams: Seams) -> _Api | None:
    """Serve the HTTP administration API if it is given an address. A bookie that cannot stops, and says why."""
    if not config.http_api.listen:
        return None
    try:
        api: _Api = await import_module(HTTP_API).InsideHttpApi.of_bookie(server, metadata, config, seams)
    except BaseException:
        await server.stop()
        raise
    return api


async def _take_commands(server: BookieServer, config: BookieConfig, listen: ListenControl) -> _Listener | None:
    """Listen for commands. A bookie that cannot serves without them."""
    path = os.path.join(config.directory, SOCKET)
    try:
        return await listen(path, BookieControl(commands_of(server), server.audit).answer)
    except (ConfigError, OSError) as error:
        log.warning("bookie %s takes no commands: %s", server.bookie_id, in_words(error))
        return None
