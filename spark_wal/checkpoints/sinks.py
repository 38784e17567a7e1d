"""Which sinks have batches that a query would compute again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Protocol

_SINK_LOG: Final = re.compile(r"_spark_metadata/(\d+)(\.compact)?")


class PublishedApp(Protocol):
    """What a stream remembers of an application; see ``bk stream apps``."""

    @property
    def app(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def base(self) -> int:
        """The number that the query's batch 0 counts as."""

    @property
    def last(self) -> int:
        """The last number that was published."""


def last_batch_of_file_sink(paths: Iterable[str]) -> int | None:
    """The last batch in a file sink's log, by the names of its files; None if there is no such log."""
    found = (_SINK_LOG.fullmatch(path) for path in paths)
    return max((int(each[1]) for each in found if each is not None), default=None)


def later_batches(apps: Iterable[PublishedApp], query: str, batch: int) -> list[tuple[str, int]]:
    """The applications that have later batches of a query than one: name, and the last batch as the query counts."""
    return [
        (app.app, app.last - app.base) for app in apps if query in (app.app, app.query) and app.last - app.base > batch
    ]
