"""Shell: what a Python process of Spark has loaded is not gone through again after each task.

Spark's Python processes serve one task after the other, and collect garbage after each. That goes through everything
that the process has loaded: PySpark, pandas, pyarrow and this project are some 100,000 objects, which takes longer than
to read or to write a hundred rows. What lives when the first task of this source or sink ends is left out from then on;
likewise in the processes that plan and commit.
It is freed as before when nobody refers to it; a cycle among it is not found any more, but that happens once in a
process, and there are no other tasks in it at that moment.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

_DAEMON: Final = "pyspark.daemon"
"""Whose children collect garbage after each task."""

_done: Final[set[int]] = set()
"""Processes in which it is done. A fork takes the module along, and what was left out, too."""


def leave_out_what_is_loaded() -> None:
    """Once in a process that Spark has made to serve tasks; nothing in any other one, an application's, say."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or spec.name != _DAEMON or os.getpid() in _done:
        return
    _done.add(os.getpid())
    gc.freeze()
