"""The console's pages of the journals that a cluster keeps: a list of them, and of each its owner, segments and
snapshots. They only read: no journal is taken over, no ledger is fenced, and no node is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    DetailLink,
    LedgerLink,
    PanelBlock,
    PanelContext,
    PanelFacts,
    PanelNote,
    PanelPage,
    PanelTable,
    Proportion,
    StateWord,
    Tone,
)
from bookkeeper.errors import BookKeeperError, NoSuchKeyError, in_words
from bookkeeper.leases.lease import LeaseValue
from journal_manager.backends.bookkeeper.journal_node import JournalNode, journal_names
from journal_manager.backends.bookkeeper.node_size import NODE_BYTES_MAX
from journal_manager.backends.bookkeeper.reader import read_entry
from journal_manager.backends.bookkeeper.snapshot_index import SnapshotIndex, SnapshotLine
from journal_manager.edits import Batch, SegmentInfo
from journal_manager.errors import JournalError, JournalNotFormattedError
from journal_manager.journals.chain import Chain

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

JOURNALS_MAX: Final = 2_000
"""Journals that the list has; they are read anew with every snapshot."""
AT_ONCE: Final = 32
"""Journals that are read at a time."""
END_S: Final = 3.0
"""Seconds for what bookies are asked: which edit of the open segment is the last."""


class JournalsPanel:
    """Journals in the console."""

    name = "journals"
    title = "Journals"

    async def snapshot(self, context: PanelContext) -> PanelPage:
        """The journals, by name. Raises BookKeeperError."""
        names = await journal_names(context.client.metadata_store)
        found: list[_Journal | _Unreadable] = []
        for at in range(0, min(len(names), JOURNALS_MAX), AT_ONCE):
            part = names[at : min(at + AT_ONCE, JOURNALS_MAX)]
            found += [each for each in await asyncio.gather(*(_listed(context.client, n) for n in part)) if each]
        return _list_page(found, len(names))

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        """One journal; ``key`` is its name. Raises BookKeeperError."""
        if key in ("", ".", ".."):  # what no path of the metadata store can have
            return None
        try:
            journal = await _read(context.client, key)
            return await _journal_page(context.client, journal)
        except JournalNotFormattedError:
            return None
        except JournalError as error:
            raise BookKeeperError(f"journal {key} cannot be read: {error}") from error


PANEL: Final = JournalsPanel()


@dataclass(frozen=True, slots=True)
class _Journal:
    """A journal as its nodes say."""

    name: str
    chain: Chain
    node_bytes: int
    snapshots: tuple[SnapshotLine, ...]
    """Those of edits that were not discarded, oldest first."""

    @property
    def replayed_from(self) -> int:
        """The last edit that a start need not replay: the newest snapshot has it."""
        return self.snapshots[-1].at if self.snapshots else 0


@dataclass(frozen=True, slots=True)
class _Unreadable:
    name: str
    why: str


async def _read(client: BookKeeper, name: str) -> _Journal:
    """Raises: JournalError, MetadataError."""
    node = JournalNode(client.metadata_store, name)
    lines, _ = await SnapshotIndex(node).read()
    chain, _ = await node.read()  # last, so that no snapshot is taken for one of edits that were discarded since
    kept = tuple(line for line in lines if not chain.discarded.covers(line.at, line.epoch))
    return _Journal(name, chain, len(chain.encode()), kept)


async def _listed(client: BookKeeper, name: str) -> _Journal | _Unreadable | None:
    """None: it was removed meanwhile."""
    try:
        return await _read(client, name)
    except JournalNotFormattedError:
        return None
    except JournalError as error:
        return _Unreadable(name, str(error))


# -- the list ------------------------------------------------------------------------------------------------


def _list_page(found: Sequence[_Journal | _Unreadable], count: int) -> PanelPage:
    columns = ("journal", "state", "owner", "epoch", "segments", "last final edit", "newest snapshot", "lag", "node")
    table = PanelTable(
        columns,
        tuple(_list_row(each) for each in found),
        empty="There are no journals",
        total=max(count, len(found)) if count > JOURNALS_MAX else None,
    )
    unreadable = [each for each in found if isinstance(each, _Unreadable)]
    blocks: list[PanelBlock] = [table]
    if found:
        blocks.append(
            PanelNote(
                "The lag is the number of final edits behind the newest snapshot, which a start replays; what an open "
                "segment holds the journal's page shows"
            )
        )
    blocks += [PanelNote(f"{each.name}: {each.why}", Tone.BAD) for each in unreadable[:20]]
    summary = f"{count} journal{'' if count == 1 else 's'}"
    if unreadable:
        summary += f", {len(unreadable)} that cannot be read"
    return PanelPage(tuple(blocks), summary, Tone.BAD if unreadable else Tone.PLAIN)


def _list_row(each: _Journal | _Unreadable) -> tuple[Cell, ...]:
    link = DetailLink(each.name, each.name)
    if isinstance(each, _Unreadable):
        return (link, StateWord("damaged", Tone.BAD), None, None, None, None, None, None, None)
    chain = each.chain
    return (
        link,
        _state(chain),
        chain.token.owner or None,
        chain.epoch,
        len(chain.segments),
        chain.last_txid or None,
        each.replayed_from or None,
        max(0, chain.last_txid - each.replayed_from),
        _fullness(each),
    )


def _state(chain: Chain) -> StateWord:
    if chain.upgrade is not None:
        return StateWord("upgrade in progress", Tone.WARN)
    if chain.open_segment is not None:
        return StateWord("open", Tone.GOOD)
    return StateWord("closed" if chain.segments else "empty", Tone.PLAIN)


def _fullness(journal: _Journal) -> Proportion:
    part = min(journal.node_bytes, NODE_BYTES_MAX)
    return Proportion(part, NODE_BYTES_MAX, Tone.WARN if part >= NODE_BYTES_MAX // 2 else Tone.PLAIN)


# -- one journal -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """The last durable edit, as far as it is known."""

    last: int
    is_certain: bool
    why: str = ""


async def _journal_page(client: BookKeeper, journal: _Journal) -> PanelPage:
    chain = journal.chain
    end = await _end(client, chain)
    active = await _active_replica(client, journal.name)
    offers = await SnapshotIndex(JournalNode(client.metadata_store, journal.name)).offers()
    lag = max(0, end.last - journal.replayed_from)
    shown = {name: each if end.is_certain else f"at least {each}" for name, each in (("last", end.last), ("lag", lag))}
    facts: dict[str, Cell] = {
        "state": _state(chain),
        "owner": chain.token.owner or None,
        "epoch": chain.epoch,
        "active replica": active,
        "last durable edit": shown["last"],
        "newest snapshot at edit": journal.replayed_from or None,
        "lag: edits that a start replays": shown["lag"],
        "layout": chain.namespace.layout_version,
        "node": _fullness(journal),
    }
    problems = [end.why] if end.why else []
    if chain.upgrade is not None:
        facts["can be rolled back to edit"] = chain.upgrade.last_txid
    if journal.node_bytes >= NODE_BYTES_MAX // 2:
        problems.append("The node fills up with segments: bk journal purge removes those that newer snapshots hold")
    blocks: list[PanelBlock] = [PanelFacts(facts), *(PanelNote(why, Tone.WARN) for why in problems)]
    blocks.append(_snapshot_table("Snapshots", "There are no snapshots", journal.snapshots))
    if offers:
        blocks.append(_snapshot_table("Offered by standbys", "none", offers))
    blocks.append(_segment_table(chain.segments))
    summary = f"{_state(chain).text}, last durable edit {shown['last']}, lag {shown['lag']}"
    return PanelPage(tuple(blocks), summary, Tone.WARN if problems else Tone.PLAIN)


async def _end(client: BookKeeper, chain: Chain) -> _End:
    """Ask bookies for the end of the open segment, for a bounded time. The ledger is opened without recovery."""
    segment = chain.open_segment
    if segment is None:
        return _End(chain.last_txid, is_certain=True)
    try:
        async with asyncio.timeout(END_S):
            async with await client.open_ledger(int(segment.location), chain.password, recovery=False) as ledger:
                last = await ledger.read_last_add_confirmed()
                found = chain.last_txid if last < 0 else Batch.of(await read_entry(ledger, last)).last
                return _End(found, is_certain=True)
    except TimeoutError:
        why = f"bookies did not say within {END_S:g} s where the open segment ends"
    except BookKeeperError as error:
        why = f"the end of the open segment is not known: {in_words(error)}"
    except (JournalError, ValueError) as error:
        why = f"the end of the open segment is not known: {error}"
    return _End(chain.last_txid, is_certain=False, why=why)


async def _active_replica(client: BookKeeper, name: str) -> Cell:
    """Who was elected last, of a program that has several replicas."""
    metadata = client.metadata_store
    try:
        found = await metadata.store.get(metadata.own("leases", quote(f"journal:{name}", safe="")))
        lease = LeaseValue.decode(found.value)
    except NoSuchKeyError:
        return None
    except (ValueError, KeyError, TypeError):
        return StateWord("its lease cannot be read", Tone.BAD)
    return StateWord(f"{lease.address} has let go", Tone.PLAIN) if lease.released else lease.address


def _snapshot_table(title: str, empty: str, lines: Sequence[SnapshotLine]) -> PanelTable:
    rows = tuple((line.at, ByteCount(line.size), LedgerLink(line.ledger)) for line in reversed(lines))
    return PanelTable(("at edit", "size", "ledger"), rows, title, empty)


def _segment_table(segments: Sequence[SegmentInfo]) -> PanelTable:
    """The newest first."""
    rows = tuple(
        (
            segment.first,
            segment.last,
            StateWord("open", Tone.GOOD) if segment.in_progress else StateWord("final", Tone.PLAIN),
            segment.epoch,
            segment.layout_version,
            _ledger(segment),
        )
        for segment in reversed(segments)
    )
    columns = ("first edit", "last edit", "state", "epoch", "layout", "ledger")
    return PanelTable(columns, rows, "Segments", "The journal has no segments")


def _ledger(segment: SegmentInfo) -> Cell:
    return LedgerLink(int(segment.location)) if segment.location.isdecimal() else segment.location
