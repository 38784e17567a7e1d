"""What a query's death says, what the sink was given, and what is printed of it all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import cattrs

from spark_wal.webhdfs.contents.upload_log import CutUpload
from tests.spark_wal.streaming_job import expected

_RENAME = ("RENAME_SRC_PATH_NOT_FOUND", "rename source", "Failed to rename temp file", "FAILED_RENAME")
"""Spark's and Hadoop's words for a rename that found no source."""

_UPLOAD = "FsPathOutputStreamRunner"
"""Hadoop's class that sends a file's bytes and takes the answer: on the stack of every upload that failed."""

_STATE = ("StateStore", "StateSchema", "StateMetadata")
"""On the stack of whoever writes below a checkpoint's ``state/``; who has none of it writes a log."""


class Cause(Enum):
    """Of a query's death."""

    CUT = "an upload that the kill cut"
    CUT_BEFORE = "an upload that the kill cut before its first byte was seen"
    LOST = "a temporary file that was acknowledged and is gone"
    OTHER = "something else"


def cause_of(text: str, cut: Sequence[CutUpload]) -> Cause:
    """Why a query died, by its error and by the gateway's record of what was open when it was killed."""
    if any(words in text for words in _RENAME):
        return Cause.LOST
    if _UPLOAD not in text:
        return Cause.OTHER
    of_state = any(word in text for word in _STATE)
    here = [upload for upload in cut if ("/state/" in upload.path) == of_state]
    if any(upload.begun for upload in here):
        return Cause.CUT
    return Cause.CUT_BEFORE if here else Cause.OTHER


@dataclass(frozen=True, slots=True)
class Kill:
    """One of them."""

    number: int
    master: str
    at: float
    cut: tuple[CutUpload, ...]
    away_s: float
    """For the prober."""
    query_s: float | None
    """For the query; None: it died."""
    cause: Cause | None = None
    text: str = ""


def written_kills(kills: Sequence[Kill]) -> str:
    """As text, for a trial that goes on later."""
    return json.dumps([cattrs.unstructure(kill) for kill in kills])


def read_kills(text: str) -> list[Kill]:
    """What ``written_kills`` wrote."""
    return [cattrs.structure(kill, Kill) for kill in json.loads(text)]


@dataclass(slots=True)
class Verdict:
    """Of all kills."""

    kills: list[Kill] = field(default_factory=list)
    batches: int = 0
    repeated: int = 0
    wrong: list[str] = field(default_factory=list)

    def deaths(self, *causes: Cause) -> list[Kill]:
        return [kill for kill in self.kills if kill.cause in causes]

    @property
    def is_good(self) -> bool:
        return not self.wrong and not self.deaths(Cause.LOST, Cause.OTHER)

    def take_sink(self, name: str, lines: Iterable[str], last: int | None = None) -> None:
        """Compare what the sink of one query was given, in order, with a batch computation."""
        following = 0
        for line in lines:
            given = json.loads(line)
            batch = given["batch"]
            if batch == following:
                following += 1
            elif batch == following - 1:
                self.repeated += 1
            else:
                self.wrong.append(f"{name}: batch {batch} comes where {following} is due")
                following = batch + 1
            if given["rows"] != expected(batch):
                self.wrong.append(f"{name}: batch {batch} is {given['rows']}, not {expected(batch)}")
        if last is not None and following != last + 1:
            self.wrong.append(f"{name}: the last batch is {following - 1}, committed is {last}")
        self.batches += following

    def lines(self) -> list[str]:
        """For people."""
        away = [kill.away_s for kill in self.kills]
        query = [kill.query_s for kill in self.kills if kill.query_s is not None]
        told = [
            f"{len(self.kills)} kills, {self.batches} batches in the sink, {self.repeated} of them twice",
            f"outage for the prober      {_spread(away)}",
            f"outage for the query       {_spread(query)}  (to the next batch in the sink, of {len(query)} that lived)",
        ]
        told += [f"deaths by {cause.value}: {len(self.deaths(cause))}" for cause in Cause]
        told.append(f"wrong batches: {len(self.wrong)}")
        told += self.wrong[:10]
        for kill in self.deaths(Cause.LOST, Cause.OTHER):
            told += [f"kill {kill.number} ({kill.master}), open: {list(kill.cut)}", kill.text]
        for kill in self.deaths(Cause.CUT_BEFORE):
            told.append(f"kill {kill.number} ({kill.master}), open: {list(kill.cut)}")
        return told


def _spread(spans: Sequence[float]) -> str:
    if not spans:
        return "-"
    ordered = sorted(spans)
    median, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"median {median:.2f} s, p99 {p99:.2f} s, most {ordered[-1]:.2f} s"
