"""What all modes read: files of JSON, one for each batch, the same for every run."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

BATCHES: Final = 4
HELD: Final = 2
"""The driver dies in this batch."""
SCHEMA: Final = "batch INT, key STRING, value BIGINT, at TIMESTAMP"
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
STEP_S: Final = 20
"""The event time of a batch is so much later than that of the one before."""
_KEYS: Final = {"left": "abcabd", "right": "acbeab"}


def rows(side: str, batch: int) -> list[dict[str, Any]]:
    """The rows of a batch. Keys come again; the fourth batch has a row from the time of the first, which is late."""
    found = []
    for number, key in enumerate(_KEYS[side]):
        late = batch == 3 and number == 5
        at = BEGAN + timedelta(seconds=(0 if late else batch * STEP_S) + number * 3 + (side == "right"))
        named = key if number < 4 else f"{key}{batch % 3}"
        found.append({"batch": batch, "key": named, "value": batch * 10 + number, "at": at.isoformat()})
    return found


def write_inputs(home: Path) -> None:
    """Write the files of both sides. Their times say in which order they are read."""
    for side in _KEYS:
        (home / side).mkdir(parents=True, exist_ok=True)
        for batch in range(BATCHES):
            write_batch(home / side, side, batch)


def write_batch(directory: Path, side: str, batch: int) -> None:
    """Write the file of one batch."""
    path = directory / f"{batch}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(side, batch)))
    stamp = BEGAN.timestamp() + batch
    os.utime(path, (stamp, stamp))
