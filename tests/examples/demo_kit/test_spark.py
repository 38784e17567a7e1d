"""What a driver prints is read line by line, and what else Spark prints is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from examples.demo_kit.cluster import DemoError
from examples.demo_kit.spark import SparkDriver
from examples.processes import Child


class Printing:
    """A child that has printed these lines, and ended."""

    log = Path("driver.log")

    def __init__(self, *lines: bytes) -> None:
        self.stdout = asyncio.StreamReader()
        self.stdout.feed_data(b"\n".join(lines) + b"\n")
        self.stdout.feed_eof()

    async def wait(self) -> int:
        return 0

    def last_words(self) -> str:
        return "the end of its log"


async def heard(*lines: bytes) -> tuple[SparkDriver, list[Mapping[str, Any]]]:
    driver = SparkDriver(cast(Child, Printing(*lines)))
    batches: list[Mapping[str, Any]] = []
    await driver.listen(batches.append)
    return driver, batches


def test_batches_are_told_and_what_spark_prints_is_passed_over() -> None:
    async def run() -> None:
        driver, batches = await heard(b"WARN something", b'{"batch": 3}', b"{no document", b'{"finished": true}')
        assert [line["batch"] for line in batches] == [3]
        assert driver.ended.is_set()
        await driver.until_finished()

    asyncio.run(run())


def test_a_driver_that_failed_says_why() -> None:
    async def run() -> None:
        driver, _ = await heard(b'{"failed": "no gateway"}')
        with pytest.raises(DemoError, match=r"has failed: no gateway; driver\.log:\nthe end of its log"):
            await driver.until_finished()
        with pytest.raises(DemoError, match="has ended too early: no gateway"):
            driver.require_running()

    asyncio.run(run())
