"""A session that runs modes: ``python driver.py '{"life": 0, "orders": [...], "conf": {...}, "inputs": ...}'``.

Each order names a mode, its directory at a place, and where it tells what it has seen. A line of JSON on standard
output follows each of them: what became of it. Then the process waits to be killed.
"""

from __future__ import annotations

import faulthandler
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.spark_table.modes import MODES
from tests.spark_table.scene import Scene

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1500m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # short queries: compiling costs more
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1h",  # by a clock; modes that want it say so
}
_LIMIT_S: Final = 400.0
"""A mode that takes so long is ended, with the process."""
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z_.]+)\]")
_FRAMES: Final = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "PYTHON_EXCEPTION")
"""Conditions that say where an error came from, not which."""
_ERROR: Final = re.compile(r"\w+Error: ")


@dataclass(frozen=True)
class Order:
    """A mode at a place."""

    mode: str
    place: str
    base: str
    out: str


def main(life: int, orders: list[dict[str, str]], conf: dict[str, str], inputs: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[64]")  # a held task has a slot of its own
    spark = builder.config(map={**SETTINGS, **conf}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for order in (Order(**each) for each in orders):
        faulthandler.dump_traceback_later(_LIMIT_S, exit=True)
        began, error = time.monotonic(), ""
        with _set(spark, dict(MODES[order.mode].conf)):
            try:
                MODES[order.mode].run(Scene(spark, life, order.base, Path(inputs), Path(order.out)))
            except Exception as raised:
                error = _in_short(str(raised))
        say(mode=order.mode, place=order.place, error=error, took_s=round(time.monotonic() - began, 1))
    faulthandler.cancel_dump_traceback_later()
    threading.Event().wait()


@contextmanager
def _set(spark: Any, conf: dict[str, str]) -> Iterator[None]:
    """Settings of the session, which a query takes when it starts."""
    before = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def _in_short(text: str) -> str:
    """Spark's name of a condition, or else Python's last error, or the first line."""
    conditions = [name for name in _CONDITION.findall(text) if name not in _FRAMES]
    errors = [line for line in text.splitlines() if _ERROR.match(line)]
    first = text.strip().partition("\n")[0]
    said = first.partition("terminated with exception: ")[2] or first  # before that there is the query's own id
    return (conditions or errors[-1:] or [said.partition(" SQLSTATE: ")[0]])[0][:300]


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
