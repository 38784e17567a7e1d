from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec

import pytest
from pyspark.sql import types as t

from segments import Position, sync
from spark_wal.data_source import sink, source, worker_heap
from spark_wal.data_source.options import WriteSettings
from spark_wal.data_source.worker_heap import freeze_loaded_objects
from tests.spark_wal.data_source.clusters import written
from tests.spark_wal.data_source.test_partition_reader import numbers, part_of


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often what is loaded was left out, in a process as Spark makes them; this one collects as before."""
    times: list[int] = []
    monkeypatch.setattr(worker_heap, "_done", set())
    monkeypatch.setattr(gc, "freeze", lambda: times.append(1))
    run_as(monkeypatch, "pyspark.daemon")
    return times


def run_as(monkeypatch: pytest.MonkeyPatch, module: str | None) -> None:
    spec = None if module is None else ModuleSpec(module, None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)


def test_a_process_that_serves_tasks_leaves_out_what_it_has_loaded_once(frozen: list[int]) -> None:
    freeze_loaded_objects()
    freeze_loaded_objects()
    assert frozen == [1]


def test_a_fork_does_it_itself(frozen: list[int]) -> None:
    worker_heap._done.add(os.getpid() + 1)
    freeze_loaded_objects()
    assert frozen == [1]


@pytest.mark.parametrize("module", [None, "pytest.__main__", "pyspark.worker"])
def test_an_application_is_left_alone(frozen: list[int], monkeypatch: pytest.MonkeyPatch, module: str | None) -> None:
    run_as(monkeypatch, module)
    freeze_loaded_objects()
    assert not frozen


def test_a_task_that_has_read_its_partition_does_it(
    namespace: sync.Namespace, cluster_uri: str, frozen: list[int]
) -> None:
    stream = written(namespace, "heap", [2])
    part = part_of(stream, Position(1, 0, 0), Position(1, 1, 0), 0, 2)
    assert numbers(stream, cluster_uri, part) == [0, 1]
    assert frozen == [1]


VALUE = t.StructType([t.StructField("value", t.BinaryType())])
STREAM = {"metadata": "sqlite:///never-opened", "stream": "s"}


@pytest.mark.parametrize(
    "plan",
    [
        lambda: source.schema(STREAM),
        lambda: source.stream_reader(STREAM, VALUE),
        lambda: sink.writer(STREAM, VALUE, overwrite=False),
        lambda: sink.stream_writer(STREAM, VALUE, overwrite=False),
    ],
    ids=["schema", "stream_reader", "writer", "stream_writer"],
)
def test_a_process_that_plans_does_it(plan: Callable[[], object], frozen: list[int]) -> None:
    plan()
    assert frozen == [1]


def test_a_process_that_commits_does_it_also_for_a_write_without_a_number(
    namespace: sync.Namespace, cluster_uri: str, frozen: list[int]
) -> None:
    written(namespace, "committed", [1])
    sink.BatchSink(WriteSettings(metadata=cluster_uri, stream="committed"), VALUE).commit([])
    assert frozen == [1]
