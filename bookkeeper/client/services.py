"""What all handles of one client share. Pure data: whoever makes the parts also closes them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from bookkeeper.client.bookies.bookie_locations import BookieLocations
from bookkeeper.client.bookies.bookie_pool import BookiePool
from bookkeeper.client.bookies.bookie_watcher import BookieWatcher
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tail_caches import TailCaches
from bookkeeper.ledger.placement import PlacementPolicy, RandomChoice
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Metrics
from bookkeeper.net.connection import StreamIds
from bookkeeper.seams import Seams


@dataclass(slots=True, kw_only=True)
class ClientServices:
    """The client's parts, handed to its handles."""

    seams: Seams
    config: ClientConfig
    metadata: Metadata
    pool: BookiePool
    watcher: BookieWatcher
    locations: BookieLocations
    placement: PlacementPolicy = field(default_factory=RandomChoice)
    streams: StreamIds = field(default_factory=StreamIds)
    operations: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    """Numbers of operations, for their request ids."""
    tails: TailCaches = field(default_factory=TailCaches)
    metrics: Metrics = field(default_factory=lambda: Metrics("bookkeeper_client_"))
