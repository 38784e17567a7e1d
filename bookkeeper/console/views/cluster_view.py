"""The first page: what is wrong, racks and bookies; and the page of one bookie. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from bookkeeper.access import Mode
from bookkeeper.amounts import counted
from bookkeeper.autorecovery.cluster_status import ABSENT, BookieStatus
from bookkeeper.console.blocks import Paging, ShownBlock, paging, show_blocks, show_table
from bookkeeper.console.cells import PageLink
from bookkeeper.console.ledger_list import LedgerList
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    Duration,
    PanelBlock,
    PanelFacts,
    PanelNote,
    Proportion,
    StateWord,
    Tone,
)
from bookkeeper.console.picture import BookiesPicture, LedgersPicture
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.view import PageView, ShownAction, ViewRequest, age_of, not_found, problem_of, waiting
from bookkeeper.ids import BookieId, some_of

NAV = "/"
FULL = 0.9
"""The part of a disk in use from which its bar warns."""
_COLUMNS = ("bookie", "rack", "state", "disk in use", "free", "size", "answered in", "ledgers", "remarks")
_NAMED = 10

PanelLine = tuple[str, str, str, Tone]
"""A panel's path, title, summary and tone."""


def cluster_page(
    bookies: CachedValue[BookiesPicture],
    ledgers: CachedValue[LedgersPicture],
    panels: Sequence[PanelLine],
    asked: ViewRequest,
) -> PageView:
    """The first page."""
    if (picture := bookies.value) is None:
        return waiting("Cluster", NAV, bookies, "The bookies are being asked")
    found = ledgers.value
    blocks: list[ShownBlock] = [
        *show_blocks([*_notes(picture, found), _facts(picture, found)], asked.address, asked.now_ms),
        *_racks(picture, asked),
        _bookies(picture, found.ledgers if found is not None else None, asked),
    ]
    if panels:
        blocks.append(_panels(panels, asked))
    summary, tone = summary_of(picture, found)
    return PageView(
        "Cluster",
        NAV,
        tuple(blocks),
        summary,
        tone,
        age_of(bookies, asked.now_ms),
        problem_of(bookies),
        asked.refresh_s,
    )


def summary_of(picture: BookiesPicture, found: LedgersPicture | None) -> tuple[str, Tone]:
    """Whether the cluster is well, in a line."""
    absent = sum(each.state == ABSENT for each in picture.status.bookies)
    stuck = len(picture.autorecovery.stuck)
    if found is None:
        return "Ledgers are being read", Tone.PLAIN
    status = found.ledgers.status
    lost, short = len(status.lost) + len(status.unreadable), len(status.short | set(picture.autorecovery.marked))
    said = [
        f"{counted(lost, 'ledger')} lost for now" if lost else "",
        f"{counted(stuck, 'repair')} stuck" if stuck else "",
        f"{counted(short, 'ledger')} short of copies" if short else "",
        f"{counted(absent, 'bookie')} absent" if absent else "",
    ]
    wrong = ", ".join(filter(None, said))
    if not wrong:
        return "Well: nothing is lost, short or stuck", Tone.GOOD
    return wrong, Tone.BAD if lost or stuck else Tone.WARN


def _notes(picture: BookiesPicture, found: LedgersPicture | None) -> Iterable[PanelBlock]:
    if found is not None and found.ledgers.status.lost:
        lost = sorted(found.ledgers.status.lost)
        yield PanelNote(
            f"Lost for now, because no bookie that is registered has some of their entries: "
            f"{counted(len(lost), 'ledger')} ({some_of(lost, _NAMED)}). Start the absent bookies again",
            Tone.BAD,
        )
    if not picture.autorecovery.enabled:
        yield PanelNote("Autorecovery is disabled: `bk autorecovery enable` switches it on", Tone.WARN)
    elif picture.autorecovery.auditor is None:
        yield PanelNote("There is no auditor, so lost bookies are not noticed: run `bk autorecovery`", Tone.WARN)
    if picture.access is None:
        yield PanelNote("The access policy cannot be read: `bk access list` says why", Tone.WARN)
    if picture.not_enforcing:
        names = some_of(picture.not_enforcing, _NAMED)
        yield PanelNote(f"The access policy is not enforced by {names}, which is open to every client", Tone.WARN)


def _facts(picture: BookiesPicture, found: LedgersPicture | None) -> PanelFacts:
    states = [each.state for each in picture.status.bookies]
    said = ", ".join(f"{states.count(state)} {state}" for state in ("writable", "read-only", ABSENT))
    facts: dict[str, Cell] = {"bookies": f"{len(states)}: {said}"}
    if found is not None:
        ledgers = found.ledgers
        by_state = ", ".join(f"{count} {state}" for state, count in sorted(ledgers.states.items()))
        facts["ledgers"] = f"{len(ledgers)}" + (f": {by_state}" if by_state else "")
        facts["payload of closed ledgers"] = ByteCount(ledgers.status.size)
    autorecovery = picture.autorecovery
    facts["auditor"] = autorecovery.auditor
    if auditing := next((each.auditing for each in autorecovery.reports if each.auditor), ""):
        facts["it says"] = auditing
    facts["access policy"] = picture.access.value if picture.access not in (None, Mode.OFF) else "off"
    return PanelFacts(facts)


def _racks(picture: BookiesPicture, asked: ViewRequest) -> list[ShownBlock]:
    """The racks, where there are several."""
    racks: dict[str, list[BookieStatus]] = {}
    for each in picture.status.bookies:
        racks.setdefault(picture.places[each.bookie], []).append(each)
    if len(racks) < 2:
        return []
    rows: list[Sequence[Cell | PageLink]] = []
    for rack, bookies in sorted(racks.items()):
        total, free = sum(each.total or 0 for each in bookies), sum(each.free or 0 for each in bookies)
        states = [each.state for each in bookies]
        rows.append(
            (
                rack,
                len(bookies),
                *(states.count(state) for state in ("writable", "read-only", ABSENT)),
                disk_in_use(total, free),
                ByteCount(free),
            )
        )
    columns = ("rack", "bookies", "writable", "read-only", ABSENT, "disk in use", "free")
    return [show_table("Racks", columns, rows, "", _all(rows), asked.now_ms)]


def _bookies(picture: BookiesPicture, ledgers: LedgerList | None, asked: ViewRequest) -> ShownBlock:
    there = sorted(picture.status.bookies, key=lambda each: (picture.places[each.bookie], each.bookie))
    turned = paging(asked.address, "rows", asked.address.number("rows"), len(there))
    rows = [_bookie_row(each, picture, ledgers) for each in there[max(0, turned.first - 1) : turned.last]]
    return show_table("Bookies", _COLUMNS, rows, "The cluster has no bookies", turned, asked.now_ms)


def _bookie_row(each: BookieStatus, picture: BookiesPicture, ledgers: LedgerList | None) -> Sequence[Cell | PageLink]:
    on_it = None if ledgers is None else ledgers.on_bookie(each.bookie)
    return (
        PageLink(each.bookie, f"/bookies?{urlencode({'of': each.bookie})}"),
        picture.places[each.bookie],
        state_word(each.state),
        disk_in_use(each.total, each.free),
        None if each.free is None else ByteCount(each.free),
        None if each.total is None else ByteCount(each.total),
        None if each.answered_s is None else Duration(each.answered_s),
        None if on_it is None else PageLink(str(on_it), f"/ledgers?{urlencode({'bookie': each.bookie})}"),
        each.problem,
    )


def _panels(panels: Sequence[PanelLine], asked: ViewRequest) -> ShownBlock:
    rows = [(PageLink(title, path), StateWord(summary, tone)) for path, title, summary, tone in panels]
    return show_table("Panels", ("panel", "says"), rows, "", _all(rows), asked.now_ms)


def _all(rows: Sequence[object]) -> Paging:
    return Paging(1 if rows else 0, len(rows), len(rows))


def state_word(state: str) -> StateWord:
    """A bookie's state with its tone."""
    tones = {"writable": Tone.GOOD, "read-only": Tone.WARN}
    return StateWord(state, tones.get(state, Tone.BAD))


def disk_in_use(total: int | None, free: int | None) -> Cell:
    """How full a disk is, as a bar."""
    if not total or free is None:
        return None
    used = max(0, total - free)
    return Proportion(used, total, Tone.WARN if used / total >= FULL else Tone.PLAIN)


def bookie_page(
    bookies: CachedValue[BookiesPicture], ledgers: CachedValue[LedgersPicture], asked: ViewRequest
) -> PageView:
    """The page of one bookie."""
    name = asked.address.params.get("of", "")
    if (picture := bookies.value) is None:
        return waiting("Bookie", NAV, bookies, "The bookies are being asked")
    found = next((each for each in picture.status.bookies if each.bookie == name), None)
    if found is None:
        return not_found("Bookie", NAV, "There is no bookie of this name, or it came after the last look")
    listed = ledgers.value.ledgers if ledgers.value is not None else None
    row = dict(zip(_COLUMNS, _bookie_row(found, picture, listed), strict=True))
    del row["bookie"], row["remarks"], row["ledgers"]
    facts: dict[str, Cell] = {key: cell for key, cell in row.items() if not isinstance(cell, PageLink)}
    blocks: list[PanelBlock] = [PanelFacts(facts)]
    if found.problem:
        blocks.append(PanelNote(f"It does not say how full it is: {found.problem}", Tone.WARN))
    shown = show_blocks(blocks, asked.address, asked.now_ms)
    if listed is not None:
        path = f"/ledgers?{urlencode({'bookie': name})}"
        rows = [(PageLink(counted(listed.on_bookie(name), "ledger"), path),)]
        shown.append(show_table("", ("named by",), rows, "", _all(rows), asked.now_ms))
    return PageView(
        f"Bookie {name}",
        NAV,
        tuple(shown),
        age=age_of(bookies, asked.now_ms),
        problem=problem_of(bookies),
        refresh_s=asked.refresh_s,
        actions=tuple(_bookie_actions(found.bookie, found.state, asked)),
    )


def _bookie_actions(bookie: BookieId, state: str, asked: ViewRequest) -> Iterable[ShownAction]:
    if asked.offers("read-only") and state != "read-only":
        yield ShownAction(
            "read-only",
            "Make it read-only",
            bookie,
            "The bookie is ordered to take no new entries; it serves what it has. Its writers go on elsewhere. The "
            "order stands in the metadata, and outlives restarts of the bookie.",
            {"off": ""},
        )
    if asked.offers("read-only") and state != "writable":
        yield ShownAction(
            "read-only",
            "Take the order back",
            bookie,
            "The bookie may take new entries again, unless its disk is full or it was started read-only.",
            {"off": "1"},
        )
    if asked.offers("drain"):
        yield ShownAction(
            "drain",
            "Drain it",
            bookie,
            "Every ledger of this bookie is copied to other bookies, and its metadata name those instead. The bookie "
            "must be read-only or absent. This takes as long as copying takes; it goes on in this console's process, "
            "and can be begun again after an interruption.",
        )
