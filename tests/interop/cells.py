"""The matrix as data: rows, columns, and which cells cannot exist, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.interop import healing, java_tools, our_tools, stories, way_out
from tests.interop.clusters import Bookies, Kind, Site
from tests.interop.stories import Stage


@dataclass(frozen=True, slots=True)
class Column:
    """A client, the bookies, and the protocol between them."""

    client: Kind
    bookies: Bookies
    protocol: str

    def __str__(self) -> str:
        return f"{self.client}-client-on-{self.bookies}-bookies-{self.protocol}"


@dataclass(frozen=True, slots=True)
class Row:
    """A story. The column's client is the writer, unless ``title`` says otherwise; the other one reads."""

    title: str
    story: Callable[[Stage], None]
    cannot_exist: Callable[[Column], str | None] = lambda column: None

    @property
    def name(self) -> str:
        return self.story.__name__


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of one language, run on bookies of the other."""

    title: str
    bookies: Bookies
    story: Callable[[Site], None]

    @property
    def reason(self) -> None:
        """It can always be run."""

    def run(self, site: Site) -> None:
        """Raises: whatever the story raises; then it is red."""
        self.story(site)

    def __str__(self) -> str:
        return f"tool-{self.story.__name__}-on-{self.bookies}-bookies"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a story, or the reason why there is none."""

    row: Row
    column: Column

    @property
    def reason(self) -> str | None:
        """Why it cannot exist; None: it can."""
        return self.row.cannot_exist(self.column)

    @property
    def bookies(self) -> Bookies:
        return self.column.bookies

    def run(self, site: Site) -> None:
        """Raises: whatever the story raises; then the cell is red."""
        site.await_whole(self.column.bookies)
        self.row.story(Stage(site, self.column.client, self.column.bookies, self.column.protocol))

    def __str__(self) -> str:
        return f"{self.row.name}-{self.column}"


def _needs_v3(column: Column) -> str | None:
    if column.protocol == "v3":
        return None
    return "protocol v2 has no field for write flags; both clients refuse deferred sync over it"


def _no_batches_over_v3(column: Column) -> str | None:
    if column.protocol == "v3" and column.client == "java":
        return "Java's client reads batches over v2 only; over v3 it refuses where every bookie has every entry"
    return None


def _java_has_no_long_poll_over_v2(column: Column) -> str | None:
    if column.protocol == "v2" and column.client == "ours":
        return "Java's client, which reads here, never gets an entry by long poll over v2, nor from Java's own writer"
    return None


def _needs(kind: Kind) -> Callable[[Column], str | None]:
    def reason(column: Column) -> str | None:
        if column.bookies in (kind, "mixed"):
            return None
        return f"no {'bookie of ours' if kind == 'ours' else 'Java bookie'} in this cluster"

    return reason


COLUMNS: Final = tuple(
    Column(client, bookies, protocol)
    for client in ("ours", "java")
    for bookies in ("ours", "java", "mixed")
    for protocol in ("v3", "v2")
)

ROWS: Final = (
    Row("write, close, read by both", stories.write_close_read),
    Row("E 4, Qw 2: write sets over both", stories.striped),
    Row("digest CRC32", stories.crc32),
    Row("digest CRC32C", stories.crc32c),
    Row("digest HMAC-SHA1", stories.hmac),
    Row("no digest (dummy)", stories.dummy),
    Row("large and empty entries", stories.large_and_empty),
    Row("ledgers without entries", stories.empty_ledger),
    Row("ledger id given, above 2^31", stories.given_id),
    Row("open without recovery", stories.open_without_recovery),
    Row("tail by long poll", stories.tail, _java_has_no_long_poll_over_v2),
    Row("tail by asking for the LAC", stories.tail_by_asking),
    Row("explicit LAC", stories.explicit_lac),
    Row("adv: entry ids given", stories.advanced),
    Row("deferred sync and force", stories.deferred_sync, _needs_v3),
    Row("batch read (the client reads)", stories.batch_read, _no_batches_over_v3),
    Row("custom metadata", stories.custom_metadata),
    Row("delete and list", stories.delete_and_list),
    Row("a live writer is fenced", stories.fencing),
    Row("a killed writer is recovered", stories.recovery),
    Row("TLS", stories.tls),
    Row("a bookie of ours dies", stories.our_bookie_dies, _needs("ours")),
    Row("a Java bookie dies", stories.java_bookie_dies, _needs("java")),
)

CELLS: Final = tuple(
    Cell(row, column)
    for row in ROWS
    for column in sorted(COLUMNS, key=lambda column: (column.protocol, column.client), reverse=True)
)
"""In the order in which they are run: the clusters take turns, so that a killed bookie comes back meanwhile."""

TOOLS: Final = (
    Tool("bookkeeper shell: simpletest", "ours", java_tools.simpletest),
    Tool("bookkeeper shell: listbookies, endpointinfo, bookieinfo", "ours", java_tools.bookies),
    Tool("bookkeeper shell: listledgers, ledgermetadata, deleteledger", "ours", java_tools.ledgers),
    Tool("bookkeeper shell: readledger, as a client and from one bookie", "ours", java_tools.readledger),
    Tool("bookkeeper shell: bookiesanity", "ours", java_tools.bookiesanity),
    Tool("bookkeeper shell: autorecovery, lostbookierecoverydelay, whatisinstanceid", "ours", java_tools.switches),
    Tool("bookkeeper shell: recover, a dead bookie of ours", "ours", java_tools.recover),
    Tool("autorecovery: a lost bookie of ours is found, its copies are made again", "ours", java_tools.autorecovery),
    Tool("Apache's autorecovery: a bookie of ours is lost with its disk", "ours", healing.javas_repairs_ours),
    Tool("both autorecoveries at once, bookies of both kinds, and ours takes over", "ours", healing.both_repair),
    Tool(
        "bookkeeper shell and our auditor: whoisauditor, lostbookierecoverydelay, recover, triggeraudit",
        "ours",
        healing.shell_and_our_auditor,
    ),
    Tool("bookkeeper shell and our auditor: decommissionbookie, listunderreplicated", "ours", healing.decommission),
    Tool("Apache's benchmark: writes over v3 and v2, reads", "ours", java_tools.benchmark),
    Tool("DistributedLog's core: a log in segments", "ours", java_tools.distributed_log),
    Tool("the way out: Java bookies join ours under load, ours are drained and stopped", "ours", way_out.way_out),
    Tool(
        "there and back: Java's bookies are replaced by ours one by one under load, and ours by Java's",
        "java",
        way_out.there_and_back,
    ),
    Tool("bk bookies, bk ledger", "java", our_tools.commands),
    Tool("edit logs (journal_manager)", "java", our_tools.journals),
    Tool("the WebHDFS gateway, twice", "java", our_tools.gateway),
    Tool("bk autorecovery: a Java bookie is lost", "java", healing.ours_repairs_java),
    Tool("bk autorecovery: a Java bookie is lost, and one of ours, of both kinds", "java", healing.ours_repairs_mixed),
)
"""Java's programs on our bookies, then ours on Java's."""
