"""Names of streams, cursors, holds and producers, and where the metadata store keeps a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from bookkeeper.access import Subject
from bookkeeper.errors import ConfigError
from segments.errors import StreamConfigError, StreamNameError

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata

NAME_BYTES_MAX: Final = 512
_REFUSED: Final = set(' <>"\\\x7f')
_RESERVED: Final = (".", "<")


def check_stream_name(name: str) -> str:
    """Check that a stream can have this name; parts are separated by slashes. A leading slash is taken away.

    Raises:
        StreamNameError: says what is wrong with it.
    """
    _check_text(name, "stream")
    normal = name[1:] if name.startswith("/") else name
    _check(normal, "stream", name)
    for part in normal.split("/"):
        if not part:
            raise StreamNameError(f"a stream cannot be named {name!r}: a part between slashes is empty")
        if part.startswith(_RESERVED):
            raise StreamNameError(f"a stream cannot be named {name!r}: no part may begin with {part[0]!r}")
    return normal


def check_short_name(name: str, what: str) -> str:
    """Check that a cursor, hold or producer (``what`` says which) can have this name.

    Raises:
        StreamNameError: says what is wrong with it.
    """
    _check_text(name, what)
    _check(name, what, name)
    return name


def check_owner_name(name: str) -> str:
    """Check that a producer, or an application that publishes, can belong to somebody of this name; empty: to nobody.

    Raises:
        StreamConfigError: nobody can have this name, or it means several people, such as ``role:writer``.
    """
    if not name:
        return name
    try:
        who = Subject.parse(name)
    except ConfigError as error:
        raise StreamConfigError(f"{error}; nothing was done") from error
    if who.kind != "name":
        raise StreamConfigError(
            f"it can belong to one who is known by his name alone, such as etl, and not to {name}; nothing was done"
        )
    return name


def _check_text(name: object, what: str) -> None:
    if not isinstance(name, str):
        raise StreamNameError(f"a {what}'s name is a text, not {name!r}; nothing was done")


def _check(name: str, what: str, given: str) -> None:
    if not name:
        raise StreamNameError(f"a {what} needs a name")
    bad = next((c for c in name if c in _REFUSED or ord(c) < 32 or 0x80 <= ord(c) < 0xA0), None)
    if bad is not None:
        raise StreamNameError(f"a {what} cannot be named {given!r}: it contains {bad!r}")
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise StreamNameError(f"a {what} cannot be named {given!r}: it is no text") from error
    if size > NAME_BYTES_MAX:
        raise StreamNameError(f"a {what}'s name has at most {NAME_BYTES_MAX} bytes, and this has {size}")


def escape_name(name: str) -> str:
    """The name as one part of a path of the metadata store."""
    return quote(name, safe="").replace(".", "%2E")


def unescape_name(part: str) -> str:
    """The name of which this is the escaped form."""
    return unquote(part)


def name_path(metadata: Metadata, name: str) -> str:
    """Where the id of the stream of this name stands."""
    return metadata.own("segments", "names", escape_name(name))


def names_path(metadata: Metadata) -> str:
    """The parent of all names."""
    return metadata.own("segments", "names")


def streams_path(metadata: Metadata) -> str:
    """The parent of all streams."""
    return metadata.own("segments", "streams")


def stream_path(metadata: Metadata, stream_id: str, *parts: str) -> str:
    """Something of a stream: ``chain``, ``pages/<key>``, ``config``, ``cursors/<name>``, ``holds``, ``lease``,
    ``producers/<name>``."""
    return metadata.own("segments", "streams", stream_id, *parts)


def new_stream_id(random_bits: int) -> str:
    """A stream's id from 128 random bits: it is never used twice.

    A chance of 128 bits is chosen over a number of the store, because it survives a store that was restored from a
    backup, and streams that are imported from another cluster.
    """
    return f"{random_bits & (2**128 - 1):032x}"
