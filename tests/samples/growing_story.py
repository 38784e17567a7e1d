"""A file that grew until its gateway was killed: a log, with its older bytes in a blob and its newest in records."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Final

import requests

from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch

PATH: Final = "/logs/eventlog_v2_app/events_1_app"
LINES: Final = [b'{"Event":"SparkListenerTaskEnd","Task":%07d}\n' % number for number in range(30_000)]
"""More than is kept in records: the first ones move to a blob."""


async def write_growing(address: Address, pack: Callable[[], None]) -> None:
    """Upload the log, and ``pack`` while the upload is open and all that came is durable."""
    end = Event()

    def body() -> Iterator[bytes]:
        for at in range(0, len(LINES), 1000):
            yield b"".join(LINES[at : at + 1000])
        end.wait()

    def upload() -> None:
        url = f"http://{address}/webhdfs/v1{PATH}?op=CREATE&namenoderpcaddress=x&user.name=spark"
        requests.put(url, data=body(), timeout=60 * stretch()).raise_for_status()

    def until_stored() -> None:
        with requests.get(f"http://{address}/events", stream=True, timeout=60 * stretch()) as feed:
            events = (json.loads(line) for line in feed.iter_lines() if line)
            next(events)
            subscribed.set()
            assert any(event["op"] == "store" for event in events)

    subscribed = Event()
    watching = asyncio.create_task(asyncio.to_thread(until_stored))
    await asyncio.to_thread(subscribed.wait)
    uploading = asyncio.create_task(asyncio.to_thread(upload))
    await watching
    await asyncio.to_thread(_until_all_are_there, address)
    await asyncio.to_thread(pack)
    end.set()
    await uploading


def read_growing(address: Address) -> None:
    """Everything that was durable is there; the file takes more, and others are written."""
    url = f"http://{address}/webhdfs/v1{PATH}?user.name=spark&op="
    found = requests.get(url + "OPEN", timeout=60 * stretch()).content
    assert found.startswith(b"".join(LINES))
    assert found.removeprefix(b"".join(LINES)) == b"more\n" * (found.count(b"more\n"))
    requests.post(url + "APPEND&namenoderpcaddress=x", b"more\n", timeout=60 * stretch()).raise_for_status()
    assert _length(address) == len(found) + 5


def _until_all_are_there(address: Address) -> None:
    while _length(address) < sum(map(len, LINES)):
        time.sleep(0.05)


def _length(address: Address) -> int:
    reply = requests.get(f"http://{address}/webhdfs/v1{PATH}?op=GETFILESTATUS", timeout=60 * stretch())
    return int(reply.json()["FileStatus"]["length"]) if reply.ok else 0
