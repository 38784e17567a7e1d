"""The flights of 2013 from New York, as records: each producer has its own part of them, numbered from 0."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final

from examples.flights.data import source_file
from segments import Record

PRODUCERS: Final = ("p1", "p2", "p3", "p4")
LIBRARY: Final = ("p1", "p2")
"""They append with the library, to the stream that an owner's process owns."""
GATEWAY: Final = ("p3", "p4")
"""They append through gateways."""
STREAMS: Final = ("flights/library", "flights/gateway")

Row = tuple[str, str, str, str, str]
"""The scheduled hour, the minute in it, the carrier, the flight, and where it leaves."""


class FlightFeed:
    """The records of one producer."""

    def __init__(self, producer: str, rows: list[Row]) -> None:
        self.producer = producer
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def record(self, number: int) -> Record:
        """The record with this number; after the last flight they begin again, with other numbers."""
        hour, minute, carrier, flight, origin = self._rows[number % len(self._rows)]
        scheduled = datetime.fromisoformat(hour.replace("Z", "+00:00")) + timedelta(minutes=float(minute))
        value = {"producer": self.producer, "number": number, "flight": f"{carrier}{flight}", "from": origin}
        text = json.dumps({**value, "scheduled": scheduled.isoformat()}, separators=(",", ":"))
        return Record(text.encode(), key=carrier.encode(), event_time=scheduled)

    def records(self, first: int, count: int) -> list[Record | bytes]:
        """Some records that follow each other."""
        return [self.record(number) for number in range(first, first + count)]


def number_of(value: bytes) -> tuple[str, int]:
    """The producer and the number in a record's value."""
    found = json.loads(value)
    return found["producer"], found["number"]


def read_flights(producers: tuple[str, ...]) -> dict[str, FlightFeed]:
    """The feeds of some producers: every fourth flight is of the same one."""
    rows: dict[str, list[Row]] = {producer: [] for producer in producers}
    with zipfile.ZipFile(source_file()) as archive, archive.open(archive.namelist()[0]) as file:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8"))
        head = next(lines)
        columns = itemgetter(*(head.index(name) for name in ("time_hour", "minute", "carrier", "flight", "origin")))
        for number, line in enumerate(lines):
            found = rows.get(PRODUCERS[number % len(PRODUCERS)])
            if found is not None:
                found.append(columns(line))
    return {producer: FlightFeed(producer, found) for producer, found in rows.items()}
