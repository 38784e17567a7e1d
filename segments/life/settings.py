"""A stream's settings in the metadata store, and a view of them that follows every change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import Versioned, Watch, update
from segments.config import StreamConfig
from segments.error_translation import worded
from segments.errors import StreamError, StreamNotFoundError
from segments.names import stream_path

_log = logging.getLogger(__name__)


class StreamSettings:
    """Reads and changes the settings of one stream."""

    def __init__(self, metadata: Metadata, stream_id: str, name: str) -> None:
        self._store = metadata.store
        self._path = stream_path(metadata, stream_id, "config")
        self.name = name

    async def read(self) -> StreamConfig:
        """The settings as they are now.

        Raises:
            StreamNotFoundError: the stream is gone. StreamCorruptError, UnsupportedStreamFormatError: they cannot be
            read. StreamMetadataError.
        """
        return StreamConfig.decode((await self._read()).value)

    async def _read(self) -> Versioned[bytes]:
        with worded(f"reading the settings of stream {self.name}", self.name):
            await self._store.sync(self._path)
            try:
                return await self._store.get(self._path)
            except NoSuchKeyError as error:
                raise StreamNotFoundError(f"there is no stream {self.name}", stream=self.name) from error

    async def patch(self, changes: Mapping[str, Any]) -> StreamConfig:
        """Change some settings: ``{"retention.max_age_s": 3600}``. Returns all of them.

        Writers follow at once. What belongs to a ledger, replication, say, holds from the next segment on.

        Raises:
            StreamConfigError: an option is unknown, or cannot have this value; nothing was changed. And as ``read``.
        """
        with worded(f"changing the settings of stream {self.name}", self.name):
            try:
                found = await update(
                    self._store, self._path, lambda data: StreamConfig.decode(data).patched(changes).encode()
                )
            except NoSuchKeyError as error:
                raise StreamNotFoundError(f"there is no stream {self.name}", stream=self.name) from error
        return StreamConfig.decode(found.value)

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when they may have changed."""
        return self._store.watch(self._path, callback)


class LiveSettings:
    """The settings that hold now, in a running program.

    Settings that cannot be read are ignored, with a warning: what held before goes on. Settings of a stream that is
    gone stay as they were.
    """

    def __init__(self, settings: StreamSettings, first: StreamConfig, changed: Callable[[StreamConfig], None]) -> None:
        self._settings = settings
        self.current = first
        """What holds now."""
        self._changed = changed
        self._look = asyncio.Event()
        self._watch = settings.watch(self._look.set)

    @classmethod
    async def follow(cls, settings: StreamSettings, changed: Callable[[StreamConfig], None]) -> LiveSettings:
        """Read them, and follow them while ``run`` runs. ``changed`` is called with each new value.

        Raises: as ``StreamSettings.read``.
        """
        live = cls(settings, StreamConfig(), changed)
        try:
            live.current = await settings.read()
        except BaseException:
            live.close()
            raise
        return live

    async def run(self) -> None:
        """Take every change, until it is cancelled."""
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                found = await self._settings.read()
            except StreamError as error:
                _log.warning("the settings of stream %s stay as they were: %s", self._settings.name, error)
                continue
            if found != self.current:
                self.current = found
                self._changed(found)

    def close(self) -> None:
        """Stop looking. Idempotent."""
        self._watch.close()
