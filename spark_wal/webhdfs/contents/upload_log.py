"""Records what happens to each upload, so that one can tell afterwards which uploads a killed gateway cut off.

Each step is a line of JSON, written at once. It survives the end of the process, but is not synced::

    {"what": "started", "at": ...}                                      the gateway
    {"what": "asked", "op": "CREATE", "path": "/a", ...}                the first step: the client is told where to send
    {"what": "begun", "op": "CREATE", "path": "/a", "number": 7, ...}   its bytes begin to come
    {"what": "answered", "number": 7, "status": 201, ...}               after the answer was sent; 0: there was none

The client repeats the first step, but never the second. So an upload that was asked for or begun, but not answered when
the gateway was killed, may have failed at its client (:func:`cut`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bookkeeper.errors import in_words
from bookkeeper.seams import Clock, Disk, File

logger = logging.getLogger(__name__)


class UploadLog:
    """Appends notes to the end of a file."""

    def __init__(self, path: str, disk: Disk, clock: Clock) -> None:
        """Open the file. Raises OSError if it cannot be written."""
        self._file: File | None = disk.open(path, create=not disk.exists(path))
        self._clock = clock
        self._end = self._file.size()
        self._number = 0
        if self._end and self._file.pread(1, self._end - 1) != b"\n":
            self._put(b"\n")  # the line before was cut short
        self._write("started")

    def on_request(self, op: str, path: str) -> None:
        self._write("asked", op=op, path=path)

    def begun(self, op: str, path: str) -> int:
        """Note that an upload has begun. Returns the number for noting its end."""
        self._number += 1
        self._write("begun", op=op, path=path, number=self._number)
        return self._number

    def answered(self, number: int, status: int) -> None:
        self._write("answered", number=number, status=status)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _write(self, what: str, **more: object) -> None:
        """Write a note. A failure does not end an upload: it is logged once, and nothing more is noted."""
        self._put(json.dumps({"what": what, "at": self._clock.wall_ms(), **more}).encode() + b"\n")

    def _put(self, line: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.pwrite(line, self._end)
        except OSError as error:
            logger.warning(
                "uploads are not noted any more, because the file of --upload-log cannot be written: %s",
                in_words(error),
            )
            self.close()
        else:
            self._end += len(line)


@dataclass(frozen=True, slots=True)
class CutUpload:
    """An upload that was not answered."""

    op: str
    path: str
    begun: bool
    """Whether its bytes had begun to arrive. Otherwise the client had been told where to send them, or would soon be.
    """


def cut(lines: Iterable[bytes]) -> list[CutUpload]:
    """Return the uploads that were open when the last gateway ended. A line that was cut short counts as absent."""
    asked: dict[tuple[str, str], None] = {}
    begun: dict[int, tuple[str, str]] = {}
    for line in lines:
        try:
            fields: Mapping[str, object] = json.loads(line)
        except ValueError:
            continue
        upload = (str(fields.get("op")), str(fields.get("path")))
        match fields["what"]:
            case "started":
                asked.clear()
                begun.clear()
            case "asked":
                asked[upload] = None
            case "begun":
                asked.pop(upload, None)
                begun[int(str(fields["number"]))] = upload
            case "answered":
                begun.pop(int(str(fields["number"])), None)
    return [CutUpload(*of, begun=True) for of in begun.values()] + [CutUpload(*of, begun=False) for of in asked]
