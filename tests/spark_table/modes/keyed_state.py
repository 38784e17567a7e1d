"""State by key in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from tests.spark_table.scene import ROCKSDB, Scene, mode

COUNT = "key STRING, n BIGINT"
SUMMARY = "key STRING, n BIGINT, last STRING, kinds BIGINT"


def counting(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Counts the rows of a key."""
    count = state.get[0] if state.exists else 0
    count += sum(len(frame) for frame in frames)
    state.update((count,))
    yield pd.DataFrame({"key": [key[0]], "n": [count]})


def expiring(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    """Counts the rows of a key, until none has come for a while of event time."""
    if state.hasTimedOut:
        (count,) = state.get
        state.remove()
        yield pd.DataFrame({"key": [f"{key[0]} is over"], "n": [count]})
        return
    count = state.get[0] if state.exists else 0
    count += sum(len(frame) for frame in frames)
    state.update((count,))
    state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 25_000)
    yield pd.DataFrame({"key": [key[0]], "n": [count]})


@mode("applyInPandasWithState, update")
def _(scene: Scene) -> None:
    groups = scene.rows().groupBy("key")
    scene.to_batches(groups.applyInPandasWithState(counting, COUNT, "n BIGINT", "update", "NoTimeout"), "update")


@mode("applyInPandasWithState, append, timeouts of event time")
def _(scene: Scene) -> None:
    groups = scene.rows().withWatermark("at", "10 seconds").groupBy("key")
    scene.to_batches(groups.applyInPandasWithState(expiring, COUNT, "n BIGINT", "append", "EventTimeTimeout"))


class Summary(StatefulProcessor):  # type: ignore[misc]
    """A value, a list and a map for each key, and a timer that forgets them."""

    timers = False

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "n BIGINT")
        self.values = handle.getListState("values", "value BIGINT")
        self.kinds = handle.getMapState("kinds", "parity INT", "n BIGINT")

    def take(self, values: list[int]) -> tuple[int, str, int]:
        """Note values; what is known now."""
        count = (self.count.get()[0] if self.count.exists() else 0) + len(values)
        self.count.update((count,))
        for value in values:
            self.values.appendValue((value,))
            parity = (value % 2,)
            before = self.kinds.getValue(parity)[0] if self.kinds.containsKey(parity) else 0
            self.kinds.updateValue(parity, (before + 1,))
        kinds = sum(1 for _ in self.kinds.keys())  # noqa: SIM118  # it is no mapping
        return count, ",".join(str(value) for (value,) in self.values.get()), kinds

    def close(self) -> None:
        pass


class PandasSummary(Summary):
    """For frames of pandas."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        count, last, kinds = self.take([int(value) for frame in rows for value in frame["value"]])
        if self.timers:
            self.handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 25_000)
        yield pd.DataFrame({"key": [key[0]], "n": [count], "last": [last], "kinds": [kinds]})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        self.values.clear()
        yield pd.DataFrame({"key": [key[0]], "n": [-1], "last": ["over"], "kinds": [0]})


class TimedSummary(PandasSummary):
    """With timers."""

    timers = True


class RowSummary(Summary):
    """For rows."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        count, last, kinds = self.take([row.value for row in rows])
        yield Row(key=key[0], n=count, last=last, kinds=kinds)


@mode("transformWithStateInPandas: value, list and map", conf=ROCKSDB)
def _(scene: Scene) -> None:
    groups = scene.rows().groupBy("key")
    scene.to_batches(groups.transformWithStateInPandas(PandasSummary(), SUMMARY, "Update", "None"), "update")
    if scene.life == 2:
        reader = scene.spark.read.format("statestore").option("path", scene.location)
        scene.see("state of count", reader.option("stateVarName", "count").load())


@mode("transformWithStateInPandas, timers of event time", conf=ROCKSDB)
def _(scene: Scene) -> None:
    groups = scene.rows().withWatermark("at", "10 seconds").groupBy("key")
    scene.to_batches(groups.transformWithStateInPandas(TimedSummary(), SUMMARY, "Append", "EventTime"))


@mode("transformWithState (rows)", conf=ROCKSDB)
def _(scene: Scene) -> None:
    groups = scene.rows().groupBy("key")
    scene.to_batches(groups.transformWithState(RowSummary(), SUMMARY, "Update", "None"), "update")
