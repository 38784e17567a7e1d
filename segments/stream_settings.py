"""The settings of a stream where they are stored, and how a stream is made: all of it, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bookkeeper.errors import KeyExistsError, NoSuchKeyError
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Create, settled_create
from segments.chain import StreamChain, encode_chain
from segments.config import StreamConfig
from segments.error_translation import worded
from segments.errors import StreamExistsError, StreamNotFoundError
from segments.names import name_path, names_path, stream_path, streams_path

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata


async def make_stream(metadata: Metadata, name: str, stream_id: str, config: StreamConfig, password: bytes) -> None:
    """Create the stream: its name, settings and record appear together. All its ledgers get ``password``.

    Raises:
        StreamConfigError: the settings ask for what streams cannot have. StreamExistsError: the name is taken.
        StreamMetadataError: it is not known whether the stream was made.
    """
    config.require_digest()
    config.require_bounds()
    store = metadata.store
    chain = encode_chain(StreamChain(stream_id=stream_id, password=password))
    with worded(f"making stream {name}", name):
        for parent in (names_path(metadata), streams_path(metadata)):
            if await store.exists(parent) is None:
                try:
                    await settled_create(store, parent, b"", parents=True)
                except KeyExistsError:
                    pass
        operations = [
            Create(name_path(metadata, name), stream_id.encode()),
            Create(stream_path(metadata, stream_id)),
            Create(stream_path(metadata, stream_id, "config"), config.encode()),
            Create(stream_path(metadata, stream_id, "chain"), chain),
        ]
        try:
            await store.multi(operations)
        except KeyExistsError as error:
            raise StreamExistsError(f"there is a stream named {name} already", stream=name) from error
        except OUTCOME_UNKNOWN:
            if await _id_of(metadata, name) != stream_id:
                raise


async def find_stream(metadata: Metadata, name: str) -> str:
    """The id of the stream of this name.

    Raises:
        StreamNotFoundError, StreamMetadataError.
    """
    with worded(f"looking for stream {name}", name):
        found = await _id_of(metadata, name)
    if found is None:
        raise StreamNotFoundError(f"there is no stream named {name}", stream=name)
    return found


async def _id_of(metadata: Metadata, name: str) -> str | None:
    path = name_path(metadata, name)
    await metadata.store.sync(path)
    try:
        return (await metadata.store.get(path)).value.decode()
    except NoSuchKeyError:
        return None


async def read_settings(metadata: Metadata, name: str, stream_id: str) -> StreamConfig:
    """The stream's settings as they are now.

    Raises:
        StreamNotFoundError, StreamMetadataError, StreamCorruptError, UnsupportedStreamFormatError.
    """
    with worded(f"reading the settings of stream {name}", name):
        try:
            found = await metadata.store.get(stream_path(metadata, stream_id, "config"))
        except NoSuchKeyError as error:
            raise StreamNotFoundError(f"there is no stream named {name}", stream=name) from error
    return StreamConfig.decode(found.value)
