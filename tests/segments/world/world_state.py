"""What the parts of one simulated world of a stream share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError
from bookkeeper.meta.stores.memory import MemoryStore
from bookkeeper.testing.world import Node
from segments.config import ProducerPolicy, RollPolicy, StreamConfig
from segments.errors import StreamError
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.record import StoredRecord
from tests.segments.world.batch_judge import BatchJudge
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.cursor_judge import CursorJudge
from tests.segments.world.judge import StreamJudge
from tests.segments.world.stream_cluster import StreamCluster

if TYPE_CHECKING:
    from segments.gateway.ownership.stream_ownership import StreamOwnership
    from segments.write import Writer

STREAM: Final = "flights"
HOSTS: Final = ("h1", "h2", "h3")
"""Programs that write, or gateways."""
READERS: Final = ("c1", "c2")
"""Programs of which one at a time reads by the cursor."""
CLEANER: Final = "cleaner"
"""The program that truncates, and applies retention."""
DRIVERS: Final = ("d1", "d2")
"""Programs that publish batches of one query: one that is to, and one that does now and then, too."""
EXECUTORS: Final = ("e1", "e2")
"""Programs that run tasks of those batches."""
APP: Final = "totals"
"""The application of those batches."""
CURSOR: Final = "billing"
PRODUCERS: Final = ("p1", "p2")
CONFIG: Final = StreamConfig(
    roll=RollPolicy(max_records=60, max_age_s=20, min_age_s=0, idle_age_s=5),
    producers=ProducerPolicy(snapshot_every_bytes=4_000),
)


@dataclass(slots=True, eq=False)
class PublishCall:
    """A call of a driver that lets a gateway publish a batch."""

    request: pb.PublishRequest
    reply: pb.PublishReply | None = None
    error: StreamError | None = None


@dataclass(slots=True)
class WorldState:
    """One world, as its parts see it."""

    seed: int
    cluster: StreamCluster
    witness: ChainWitness
    gateways: bool
    """Whether the hosts are gateways, which agree by a lease who writes. Otherwise they take turns."""
    rng: Random
    with_batches: bool = False
    judge: StreamJudge = field(default_factory=StreamJudge)
    cursor: CursorJudge = field(default_factory=CursorJudge)
    batches: BatchJudge = field(default_factory=BatchJudge)
    turn: str = HOSTS[0]
    """The host that is to write."""
    reading: str = READERS[0]
    """The program that is to read by the cursor."""
    driving: str = DRIVERS[0]
    """The driver that is to publish."""
    calm: bool = False
    """No more work."""
    busy: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a host sends something."""
    batch_busy: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a driver begins with a step."""
    publishing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a driver begins to publish."""
    calls: list[PublishCall] = field(default_factory=list)
    """Calls of drivers that no gateway has taken yet."""
    sessions: dict[str, MemoryStore] = field(default_factory=dict)
    tailed: list[StoredRecord] = field(default_factory=list)
    """What a reader has seen that follows the stream from its beginning."""
    ownerships: dict[str, StreamOwnership[Writer]] = field(default_factory=dict)
    """What each gateway that runs knows of who owns the stream."""

    @property
    def owner(self) -> str:
        """The host that writes now, or is to write."""
        here = [name for name, ownership in self.ownerships.items() if ownership.is_here and self._lives(name)]
        return here[0] if here else self.turn

    def _lives(self, name: str) -> bool:
        return self.cluster.world.node(name).alive

    def on_acked(self, value: bytes, position: Position, *, duplicate: bool = False) -> None:
        """A host was told that its record is durable."""
        self.judge.on_acked(value, position, duplicate=duplicate)
        self.witness.see_acknowledged(position.segment)

    async def connect(self, machine: Node) -> BookKeeper:
        """A client on a machine that may crash."""
        while True:
            try:
                client = await self.cluster.new_client(node=machine)
            except BookKeeperError:
                await asyncio.sleep(0.1)
                continue
            store = client.metadata_store.store
            assert isinstance(store, MemoryStore)
            self.sessions[machine.name] = store
            return client
