"""A stream's settings in the metadata store: read, and changed by name.

A stream that is renamed writes its settings again, as they are. So whoever names their version in a write knows that
the stream has the same name still, and is not deleted. The version of a name tells neither: a name is made and removed,
and another stream may have it, in the same version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import Check, Set, Versioned, get_or_none, update
from segments.config import StreamConfig
from segments.error_translation import worded
from segments.errors import StreamNotFoundError
from segments.names import name_path, stream_path


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
        return (await self.read_as_they_are())[0]

    async def read_as_they_are(self) -> tuple[StreamConfig, Check]:
        """The settings, and the condition that they are still these. Raises: as ``read``."""
        found = await self._read()
        return StreamConfig.decode(found.value), Check(self._path, found.version)

    async def _read(self) -> Versioned[bytes]:
        with worded(f"reading the settings of stream {self.name}", self.name):
            await self._store.sync(self._path)
            try:
                return await self._store.get(self._path)
            except NoSuchKeyError as error:
                raise StreamNotFoundError(f"there is no stream {self.name}", stream=self.name) from error

    async def patch(self, changes: Mapping[str, Any]) -> StreamConfig:
        """Change some settings: ``{"retention.max_age_s": 3600}``. Returns all of them.

        Retention follows at once: a pass that has decided by the former settings decides again. A writer follows with
        its next segment.

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


@dataclass(frozen=True, slots=True)
class NamedStream:
    """What a name leads to."""

    id: str
    name: Versioned[bytes]
    settings: Set | None
    """Writes the settings again, as they are: fails once the stream has another name, or is gone. None: it has none."""

    @property
    def unchanged(self) -> tuple[Check, ...]:
        """The condition that the stream still has the name."""
        return () if self.settings is None else (Check(self.settings.path, self.settings.expected),)


async def named_stream(metadata: Metadata, name: str) -> NamedStream | None:
    """The stream that has a name now; None: there is none. Raises BookKeeper's metadata errors."""
    path, store = name_path(metadata, name), metadata.store
    found = await get_or_none(store, path, fresh=True)
    while found is not None:
        settings_path = stream_path(metadata, stream_id := found.value.decode(), "config")
        settings = await get_or_none(store, settings_path, fresh=True)
        before, found = found, await get_or_none(store, path, fresh=True)
        if found is not None and found.value == before.value:
            again = None if settings is None else Set(settings_path, settings.value, settings.version)
            return NamedStream(stream_id, found, again)
    return None
