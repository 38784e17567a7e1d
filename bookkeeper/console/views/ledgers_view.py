"""The list of ledgers, by state, health and bookie; and deleted ledgers that can be brought back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from bookkeeper.amounts import counted, time_in_words
from bookkeeper.console.blocks import ROWS, PageAddress, paging, show_blocks, show_table
from bookkeeper.console.cells import PageLink
from bookkeeper.console.ledger_list import HEALTHS, MARKED, UNREADABLE, LedgerFilter, LedgerRow
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    LedgerLink,
    Moment,
    PanelBlock,
    PanelFacts,
    PanelNote,
    StateWord,
    Tone,
)
from bookkeeper.console.picture import DeletedRow, LedgersPicture
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.view import (
    Choice,
    PageView,
    ShownAction,
    ViewRequest,
    age_of,
    not_found,
    problem_of,
    waiting,
)

NAV = "/ledgers"
DELETED = "/deleted"
_COLUMNS = ("ledger", "state", "copies", "E/Qw/Qa", "entries", "size", "fragments", "bookies", "created")
_STATES = ("open", "in recovery", "closed", UNREADABLE)
HEALTH_TONES = {"well": Tone.GOOD, "short": Tone.WARN, "lost": Tone.BAD, UNREADABLE: Tone.BAD, MARKED: Tone.WARN}


def ledgers_page(ledgers: CachedValue[LedgersPicture], read_so_far: int, asked: ViewRequest) -> PageView:
    """One page of the list."""
    if (picture := ledgers.value) is None:
        return waiting("Ledgers", NAV, ledgers, f"The ledgers are being read: {read_so_far} so far")
    params = asked.address.params
    wanted = LedgerFilter(params.get("state", ""), params.get("health", ""), params.get("bookie", ""))
    newest_first = params.get("order") != "oldest"
    at = asked.address.number("rows")
    found = picture.ledgers.select(wanted, at, ROWS, newest_first=newest_first)
    turned = paging(asked.address, "rows", at, found.total)
    table = show_table(
        "", _COLUMNS, [_row(each) for each in found.rows], "There is no such ledger", turned, asked.now_ms
    )
    which = f" that name {wanted.bookie}" if wanted.bookie else ""
    return PageView(
        "Ledgers",
        NAV,
        (table,),
        f"{counted(found.total, 'ledger')}{which}",
        age=f"{age_of(ledgers, asked.now_ms)}: {picture.read_anew} of {counted(len(picture.ledgers), 'ledger')} anew",
        problem=problem_of(ledgers),
        refresh_s=asked.refresh_s,
        choices=_choices(picture, wanted, asked.address, newest_first),
    )


def _choices(
    picture: LedgersPicture, wanted: LedgerFilter, address: PageAddress, newest_first: bool
) -> tuple[tuple[str, tuple[Choice, ...]], ...]:
    first = PageAddress(address.path, {key: word for key, word in address.params.items() if key != "rows"})
    listed = picture.ledgers

    def among(name: str, words: Sequence[str], chosen: str, counts: dict[str, int]) -> tuple[Choice, ...]:
        every = Choice("all", first.with_param(name, ""), len(listed), not chosen)
        shown = [word for word in words if counts.get(word) or word == chosen or word in ("open", "closed")]
        return (every, *(Choice(w, first.with_param(name, w), counts.get(w, 0), w == chosen) for w in shown))

    groups = [
        ("state", among("state", _STATES, wanted.state, dict(listed.states))),
        ("copies", among("health", HEALTHS, wanted.health, dict(listed.healths))),
        (
            "order",
            (
                Choice("newest first", first.with_param("order", ""), None, newest_first),
                Choice("oldest first", first.with_param("order", "oldest"), None, not newest_first),
            ),
        ),
    ]
    if wanted.bookie:
        every = Choice("all", first.with_param("bookie", ""), len(listed))
        one = Choice(wanted.bookie, first.with_param("bookie", wanted.bookie), listed.on_bookie(wanted.bookie), True)
        groups.append(("bookie", (every, one)))
    return tuple(groups)


def _row(each: LedgerRow) -> Sequence[Cell]:
    spec = each.spec
    return (
        LedgerLink(each.ledger_id),
        StateWord(each.state, Tone.BAD if each.state == UNREADABLE else Tone.PLAIN),
        StateWord(each.problem or each.health, HEALTH_TONES.get(each.health, Tone.PLAIN)),
        None if spec is None else f"{spec.ensemble_size}/{spec.write_quorum}/{spec.ack_quorum}",
        each.entries,
        None if each.size is None else ByteCount(each.size),
        each.fragments,
        len(each.bookies),
        None if each.created_ms is None else Moment(each.created_ms),
    )


# -- deleted ---------------------------------------------------------------------------------------------------


def deleted_page(ledgers: CachedValue[LedgersPicture], asked: ViewRequest) -> PageView:
    """The deleted ledgers that can be brought back."""
    if (picture := ledgers.value) is None:
        return waiting("Deleted ledgers", DELETED, ledgers, "The ledgers are being read")
    if of := asked.address.params.get("of", ""):
        return _one_deleted(of, picture, ledgers, asked)
    turned = paging(asked.address, "rows", asked.address.number("rows"), len(picture.deleted))
    rows: list[Sequence[Cell | PageLink]] = [
        (
            PageLink(str(each.ledger_id), f"{DELETED}?{urlencode({'of': each.ledger_id})}"),
            Moment(each.deleted_ms),
            _in_future(each, asked.now_ms),
            each.entries,
            None if each.size is None else ByteCount(each.size),
            each.problem,
        )
        for each in picture.deleted[max(0, turned.first - 1) : turned.last]
    ]
    columns = ("ledger", "deleted", "can be brought back", "entries", "size", "remarks")
    table = show_table("", columns, rows, "No deleted ledger can be brought back", turned, asked.now_ms)
    note = PanelNote("`bk ledger undelete LEDGER` brings one back, as long as its time is not over")
    return PageView(
        "Deleted ledgers",
        DELETED,
        (*show_blocks([note], asked.address, asked.now_ms), table),
        f"{counted(len(picture.deleted), 'deleted ledger')} can be brought back",
        age=age_of(ledgers, asked.now_ms),
        problem=problem_of(ledgers),
        refresh_s=asked.refresh_s,
    )


def _one_deleted(
    of: str, picture: LedgersPicture, ledgers: CachedValue[LedgersPicture], asked: ViewRequest
) -> PageView:
    found = next((each for each in picture.deleted if str(each.ledger_id) == of), None)
    if found is None:
        return not_found("Deleted ledger", DELETED, "No deleted ledger of this number can be brought back")
    facts: dict[str, Cell] = {
        "deleted": Moment(found.deleted_ms),
        "can be brought back": _in_future(found, asked.now_ms),
        "entries": found.entries,
        "size": None if found.size is None else ByteCount(found.size),
    }
    blocks: list[PanelBlock] = [PanelFacts(facts), PanelNote(f"`bk ledger undelete {found.ledger_id}` brings it back")]
    purge = ShownAction(
        "purge",
        "Purge it",
        str(found.ledger_id),
        "The ledger is gone for ever: nobody can bring it back, and its bookies reclaim its space.",
    )
    return PageView(
        f"Deleted ledger {found.ledger_id}",
        DELETED,
        tuple(show_blocks(blocks, asked.address, asked.now_ms)),
        age=age_of(ledgers, asked.now_ms),
        problem=problem_of(ledgers),
        actions=(purge,) if asked.offers("purge") else (),
    )


def _in_future(each: DeletedRow, now_ms: int) -> Cell:
    left_s = (each.until_ms - now_ms) / 1000
    return f"for {time_in_words(left_s)}" if left_s > 0 else "not for long"
