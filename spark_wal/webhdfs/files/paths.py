"""Paths, and their form in a request.

A path is ``/`` or ``/a/b``: absolute, without empty names, without a slash at the end. ``.`` and ``..`` are not
resolved: no file can have such a name, so a read of one finds nothing.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from spark_wal.webhdfs.errors import InvalidPathError, NameTooLongError

PREFIX: Final = "/webhdfs/v1"
NAME_BYTES_MAX: Final = 255
"""HDFS's default limit of one name, in bytes of UTF-8."""

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNQUOTED: Final = "/~!*()$,@=+;&'"
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.TID\d+)?\.tmp")


class BadTargetError(ValueError):
    """The request target is not a path: the answer is 400 without a RemoteException, like Jetty's."""


def decode_path(raw: str) -> str:
    """The path of a request target without its prefix.

    ``raw`` is the target as sent, up to the ``?``. Bytes that are not UTF-8 are surrogate escapes.

    Raises:
        BadTargetError: an escape is broken, or there is a NUL.
    """
    if "%" not in raw and "\0" not in raw and raw.isascii():
        return normalize(raw)
    if _BAD_ESCAPE.search(raw):
        raise BadTargetError("a percent escape in the path is broken")
    data = unquote_to_bytes(raw.encode("utf-8", "surrogateescape"))
    if 0 in data:
        raise BadTargetError("the path has a NUL in it")
    return normalize(data.decode("utf-8", "replace"))


def encode_path(path: str) -> str:
    """Encode the path for a Location header."""
    return quote(path, safe=_UNQUOTED)


def normalize(path: str) -> str:
    """Remove double slashes and a slash at the end."""
    if "//" not in path and (len(path) == 1 or not path.endswith("/")) and path.startswith("/"):
        return path
    return "/" + "/".join(name for name in path.split("/") if name)


def names_of(path: str) -> list[str]:
    """The names of a path from the top down; none for the root."""
    return [] if path == "/" else path[1:].split("/")


def parent_of(path: str) -> str:
    """The directory that holds ``path``; the root's is the root."""
    return path[: path.rfind("/")] or "/"


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def child_of(directory: str, name: str) -> str:
    return f"/{name}" if directory == "/" else f"{directory}/{name}"


def is_below(path: str, ancestor: str) -> bool:
    """Whether ``path`` lies somewhere under ``ancestor`` (a path is not below itself)."""
    return path != ancestor and (ancestor == "/" or path.startswith(ancestor + "/"))


def check_new(path: str) -> None:
    """Check the path of a new file or directory.

    Raises:
        InvalidPathError: a name is ``.`` or ``..`` or has a colon in it.
        NameTooLongError: a name is longer than NAME_BYTES_MAX.
    """
    for name in names_of(path):
        if name in (".", "..") or ":" in name:
            raise InvalidPathError(f"Invalid path name Invalid file name: {path}")
        if len(name) > NAME_BYTES_MAX // 4 and (size := len(name.encode("utf-8", "replace"))) > NAME_BYTES_MAX:
            raise NameTooLongError(
                f"The maximum path component name limit of {name} in directory {parent_of(path)} is exceeded: "
                f"limit={NAME_BYTES_MAX} length={size}"
            )


def is_temporary(path: str) -> bool:
    """Whether this is exactly the name that Spark's checkpoint file manager gives a file before its rename.

    The name is ``.<name>.<uuid>[.TID<n>].tmp``. Only such a file may be removed after it was abandoned, because nobody
    relies on it before the rename that publishes it.
    """
    return path.endswith(".tmp") and _TEMPORARY.fullmatch(name_of(path)) is not None
