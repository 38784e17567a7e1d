"""Where a query is in its stream, as its checkpoint keeps it (pure).

An offset names the first record that was *not* read::

    {"format": 1, "stream": "<id>", "next": "3:17:0", "nextSeqNo": 912}

So a batch is the records from its start's ``next`` up to, and without, its end's ``next``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from segments.position import Position

FORMAT: Final = 1
_PLACE: Final = re.compile(r"(\d+):(\d+):(\d+)")


class OffsetError(ValueError):
    """An offset in the checkpoint cannot be used; nothing was read."""


@dataclass(frozen=True, slots=True, order=True)
class StreamOffset:
    """The first record of a stream that was not read."""

    next_seq_no: int
    """Its number."""
    next: Position
    """Its place; no record need be there yet."""
    stream_id: str

    def document(self) -> dict[str, Any]:
        """As Spark keeps it."""
        return {"format": FORMAT, "stream": self.stream_id, "next": str(self.next), "nextSeqNo": self.next_seq_no}


def read_offset(found: Mapping[str, Any], stream_id: str, name: str) -> StreamOffset:
    """An offset of a checkpoint, for the stream that has this id now.

    Raises:
        OffsetError: it is none, is of a later version, or of another stream.
    """
    if found.get("format") != FORMAT:
        raise OffsetError(f"the checkpoint has an offset that this version cannot read: {json.dumps(dict(found))}")
    if found["stream"] != stream_id:
        raise OffsetError(
            f"the checkpoint belongs to another stream: that one has id {found['stream']}, and stream {name} has "
            f"{stream_id} (one that was deleted and made anew is another one). Start with a new checkpointLocation"
        )
    place = _PLACE.fullmatch(str(found["next"]))
    if place is None:
        raise OffsetError(f"the checkpoint has an offset without a place: {json.dumps(dict(found))}")
    return StreamOffset(int(found["nextSeqNo"]), Position(*map(int, place.groups())), stream_id)
