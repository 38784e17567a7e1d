"""What auditors and repair workers agree on, in Apache BookKeeper's nodes, so that Java's and ours can share a cluster.

    <root>/underreplication
    |-- LAYOUT                    type: "BASIC", version: 1
    |-- disable                   autorecovery is switched off while this exists
    |-- lostBookieRecoveryDelay   seconds, as text; every write of it asks the auditor to look at once
    |-- checkallledgersctime      when all ledgers were checked last: milliseconds since 1970, protobuf
    |-- replicascheckctime        when what bookies hold was last compared with the metadata
    |-- auditorelection           the present auditor's name: bookieId: "..."
    |   `-- V_0000000007          a candidate's vote, ephemeral; the lowest number is the auditor
    |-- ledgers                   the list of under-replicated ledgers (under_replication.py)
    `-- locks                     who repairs a ledger (bookkeeper.replication.copying.repair_lock)

    <root>-py/autorecovery/<name>  what a process of ours does and cannot do: ephemeral, JSON (ours alone)

* A vote belongs to a session: an auditor whose session ends is none any more.
* Nothing here guards safety: two auditors at once mark the same ledgers twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from bookkeeper.errors import ConfigError, MetadataFormatError, NoSuchKeyError
from bookkeeper.meta import metadata_pb2 as pb
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, Watch, ensure_created, ensure_deleted, get_or_none, names_below, put

VOTE: Final = "V_"
"""How the name of a vote begins; ten digits follow."""


class ClusterCheck(Enum):
    """A check of the whole cluster, by the node that says when it was done last."""

    ALL_LEDGERS = "checkallledgersctime"
    """Every copy can be read."""
    REPLICAS = "replicascheckctime"
    """What the bookies say they hold is what the metadata say."""
    PLACEMENT = "placementpolicycheckctime"
    """The copies of each entry stand in enough racks."""


@dataclass(frozen=True, slots=True, order=True)
class Vote:
    """One candidate's vote."""

    sequence: int
    path: str


class AutorecoveryNodes:
    """The nodes of one cluster. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._root = f"{paths.root}/underreplication"
        self._election = f"{self._root}/auditorelection"
        self._disable = f"{self._root}/disable"
        self._delay = f"{self._root}/lostBookieRecoveryDelay"
        self._own = paths.own("autorecovery")

    async def prepare(self, delay_s: int) -> None:
        """Create what a new cluster lacks. ``delay_s``: the delay, unless one is written already."""
        layout = pb.LedgerRereplicationLayoutFormat(type="BASIC", version=1)
        for path, value in (
            (f"{self._root}/LAYOUT", text_format.MessageToBytes(layout)),
            (f"{self._root}/ledgers", b""),
            (f"{self._root}/locks", b""),
            (self._election, b""),
            (self._delay, str(delay_s).encode()),
        ):
            await ensure_created(self._store, path, value)

    # -- on or off ----------------------------------------------------------------------------------------

    async def is_enabled(self) -> bool:
        """Whether auditors and workers may work."""
        await self._store.sync(self._disable)
        return await self._store.exists(self._disable) is None

    async def disable(self) -> None:
        """Switch autorecovery off for the whole cluster. Idempotent."""
        await ensure_created(self._store, self._disable)

    async def enable(self) -> None:
        """Switch it on again. Idempotent."""
        await ensure_deleted(self._store, self._disable)

    # -- the delay, and the request to look now ------------------------------------------------------------

    async def delay_s(self) -> int | None:
        """How long a bookie may be away before its ledgers are repaired; None: nobody has written it.

        Raises: MetadataFormatError: it is no number.
        """
        if (found := await get_or_none(self._store, self._delay, fresh=True)) is None:
            return None
        if not (text := found.value).isdigit():
            raise MetadataFormatError(f"{self._delay} is {text[:40]!r}, which is no number of seconds: write it anew")
        return int(text)

    async def delay_version(self) -> int | None:
        """Counts the writes of the delay: each of them asks the auditor to look at once."""
        return await self._store.exists(self._delay)

    async def write_delay(self, seconds: int) -> None:
        """Set the delay, and so ask the auditor to look at once. Raises: ConfigError."""
        if seconds < 0:
            raise ConfigError(f"the delay is {seconds} s: it has to be 0 or more")
        await put(self._store, self._delay, str(seconds).encode())

    # -- checks of the whole cluster -----------------------------------------------------------------------

    async def last_check(self, check: ClusterCheck) -> int | None:
        """When the check was completed last, in milliseconds since 1970; None: never, or it was asked for anew."""
        if (found := await get_or_none(self._store, f"{self._root}/{check.value}")) is None:
            return None
        message = pb.CheckTimeFormat()
        try:
            message.ParseFromString(found.value)
        except DecodeError as error:
            raise MetadataFormatError(
                f"{self._root}/{check.value} cannot be read ({error}): delete it, and the check is done anew"
            ) from error
        return message.time

    async def record_check(self, check: ClusterCheck, now_ms: int) -> None:
        """Note that the check is completed."""
        value = pb.CheckTimeFormat(time=now_ms).SerializeToString()
        await put(self._store, f"{self._root}/{check.value}", value)

    async def request_check(self, check: ClusterCheck) -> None:
        """Make the check due now, by forgetting when it was done."""
        await ensure_deleted(self._store, f"{self._root}/{check.value}")

    # -- the election of the auditor ------------------------------------------------------------------------

    async def votes(self) -> list[Vote]:
        """All votes, the auditor's first."""
        names = await names_below(self._store, self._election, fresh=True)
        return sorted(
            Vote(int(name[len(VOTE) :]), f"{self._election}/{name}")
            for name in names
            if name.startswith(VOTE) and name[len(VOTE) :].isdecimal()
        )

    async def cast(self, name: str) -> Vote:
        """Cast a vote for this session, or find the one that it has cast already (a reply may have been lost)."""
        value = encode_vote(name)
        for vote in await self.votes():
            try:
                ours = await self._store.owner(vote.path) == self._store.session_id
                if ours and (await self._store.get(vote.path)).value == value:
                    return vote
            except NoSuchKeyError:
                continue
        path, _ = await self._store.create(
            f"{self._election}/{VOTE}", value, ephemeral=True, sequential=True, parents=True
        )
        return Vote(int(path.rpartition(VOTE)[2]), path)

    async def withdraw(self, vote: Vote) -> None:
        """Take a vote back. Idempotent."""
        await ensure_deleted(self._store, vote.path)

    async def announce(self, name: str) -> None:
        """Write the auditor's name where Apache's tools read it."""
        await put(self._store, self._election, encode_vote(name))

    async def auditor(self) -> str | None:
        """The name in the first vote; None: there is no auditor."""
        for vote in await self.votes():
            if (found := await get_or_none(self._store, vote.path)) is not None:
                return decode_vote(found.value)
        return None

    # -- what our processes say of themselves ----------------------------------------------------------------

    async def publish(self, name: str, report: bytes) -> None:
        """Replace this process's report, which ends with its session."""
        await put(self._store, f"{self._own}/{name}", report, ephemeral=True)

    async def unpublish(self, name: str) -> None:
        """Remove this process's report. Idempotent."""
        await ensure_deleted(self._store, f"{self._own}/{name}")

    async def reports(self) -> dict[str, bytes]:
        """The reports of all processes that are up, by name."""
        reports: dict[str, bytes] = {}
        for name in await names_below(self._store, self._own, fresh=True):
            if (found := await get_or_none(self._store, f"{self._own}/{name}")) is not None:
                reports[name] = found.value
        return reports

    # -- being told ------------------------------------------------------------------------------------------

    def watch(self, callback: Callable[[], None]) -> list[Watch]:
        """Call back when autorecovery is switched, the delay is written, or a vote comes or goes."""
        return [
            self._store.watch(self._disable, callback),
            self._store.watch(self._delay, callback),
            self._store.watch_children(self._election, callback),
        ]

    def watch_marks(self, callback: Callable[[], None]) -> Watch:
        """Call back when a ledger is marked whose id is far from those marked before. That is a hint: whoever needs to
        know lists again from time to time."""
        return self._store.watch_children(f"{self._root}/ledgers", callback)


def encode_vote(name: str) -> bytes:
    """The bytes of a vote."""
    return text_format.MessageToBytes(pb.AuditorVoteFormat(bookieId=name))


def decode_vote(data: bytes) -> str:
    """The name in a vote. Raises: MetadataFormatError."""
    message = pb.AuditorVoteFormat()
    try:
        text_format.Parse(data, message)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise MetadataFormatError(f"the vote of an auditor cannot be read: {error}") from error
    return message.bookieId
