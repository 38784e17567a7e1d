"""State by key in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from tests.spark_table.scene import Scene, mode


def _counted(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    count = state.get[0] if state.exists else 0
    count += sum(len(frame) for frame in frames)
    state.update((count,))
    yield pd.DataFrame({"key": [key[0]], "n": [count]})


@mode("applyInPandasWithState")
def _(scene: Scene) -> None:
    groups = scene.rows().groupBy("key")
    scene.to_batches(
        groups.applyInPandasWithState(_counted, "key STRING, n BIGINT", "n BIGINT", "update", "NoTimeout"), "update"
    )
