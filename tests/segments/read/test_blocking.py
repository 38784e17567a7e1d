"""Reading for threads asks nothing of the rest of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from segments import EARLIEST, sync
from segments.read.blocking import connect_known
from tests.segments.clusters import AT_ONCE

UNNEEDED = ("segments.write", "segments.cursors", "segments.retention", "segments.checks", "journal_manager", "cattrs")


def test_a_part_is_read_by_threads(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}?bookies=3"
    with sync.connect(uri) as namespace:
        stream = namespace.create("orders", config=AT_ONCE)
        with stream.writer() as writer:
            writer.append(b"one")
        part = stream.view().known(EARLIEST, stream.tail_position())
        with connect_known(uri, part.cluster) as streams:
            streams.learn(part.cluster)
            with streams.read(part, EARLIEST) as reader:
                assert [record.value for record in reader] == [b"one"]  # type: ignore[union-attr]


def test_a_process_that_only_reads_loads_nothing_else() -> None:
    """Spark starts processes for every table that is read."""
    code = f"import segments.read.blocking, sys; print([m for m in {UNNEEDED} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
