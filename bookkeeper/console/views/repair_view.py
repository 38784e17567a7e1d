"""What lacks copies, why, and what autorecovery does about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bookkeeper.amounts import counted
from bookkeeper.autorecovery.marked import MarkedLedger
from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.console.blocks import show_blocks
from bookkeeper.console.panels import (
    ROWS_MAX,
    ByteCount,
    Cell,
    LedgerLink,
    Moment,
    PanelBlock,
    PanelFacts,
    PanelNote,
    PanelTable,
    StateWord,
    Tone,
)
from bookkeeper.console.picture import BookiesPicture, LedgersPicture
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.view import PageView, ViewRequest, age_of, problem_of, waiting

NAV = "/repair"


def repair_page(
    bookies: CachedValue[BookiesPicture], ledgers: CachedValue[LedgersPicture], doing: Iterable[str], asked: ViewRequest
) -> PageView:
    """Under-replication, with progress and reasons. ``doing``: what this console was asked to do and still does."""
    if (picture := bookies.value) is None:
        return waiting("Repair", NAV, bookies, "Autorecovery is being asked")
    status = picture.autorecovery
    marks = {each.ledger_id: each for each in ledgers.value.marked} if ledgers.value is not None else {}
    now = [marks.get(ledger, MarkedLedger(ledger)) for ledger in status.marked]
    reports = status.reports
    blocks: list[PanelBlock] = []
    if not status.enabled:
        blocks.append(PanelNote("Autorecovery is disabled: `bk autorecovery enable` switches it on", Tone.WARN))
    elif status.auditor is None:
        blocks.append(PanelNote("There is no auditor: run `bk autorecovery`", Tone.WARN))
    blocks += [
        PanelFacts(
            {
                "auditor": status.auditor,
                "it says": next((each.auditing for each in reports if each.auditor), None),
                "a bookie counts as lost after": None if status.delay_s is None else f"{status.delay_s} s",
                **{
                    f"last check of {check.name.lower().replace('_', ' ')}": None if at is None else Moment(at)
                    for check, at in status.checks.items()
                },
            }
        ),
        _processes(reports),
        PanelTable(
            ("what",),
            tuple((line,) for line in [*(line for each in reports for line in each.working), *doing]),
            "Being done now",
            "Nothing is being repaired",
        ),
        _stuck(reports),
        _marked(now, bool(marks)),
    ]
    stuck = len(status.stuck)
    said = f"{counted(len(status.marked), 'ledger')} marked" + (f", {stuck} stuck" if stuck else "")
    return PageView(
        "Repair",
        NAV,
        tuple(show_blocks(blocks, asked.address, asked.now_ms)),
        said,
        Tone.BAD if stuck else Tone.WARN if status.marked else Tone.GOOD,
        age_of(bookies, asked.now_ms),
        problem_of(bookies),
        asked.refresh_s,
    )


def _processes(reports: list[AutorecoveryReport]) -> PanelTable:
    rows: list[tuple[Cell, ...]] = [
        (
            each.name,
            "auditor" if each.auditor else "",
            each.repaired,
            each.recovered,
            each.copied_entries,
            ByteCount(each.copied_bytes),
            each.waiting,
            each.stuck_count or len(each.stuck),
            Moment(each.updated_ms) if each.updated_ms else None,
        )
        for each in reports
    ]
    columns = ("process", "", "repaired", "recovered", "entries copied", "copied", "waiting", "stuck", "said")
    return PanelTable(columns, tuple(rows), "Processes of autorecovery", "None says anything; Java's never do")


def _stuck(reports: list[AutorecoveryReport]) -> PanelTable:
    rows: list[tuple[Cell, ...]] = [
        (LedgerLink(each.ledger), StateWord(each.reason, Tone.BAD), each.tries, Moment(each.since_ms))
        for report in reports
        for each in report.stuck
    ]
    total = sum(max(each.stuck_count, len(each.stuck)) for each in reports)
    columns = ("ledger", "why it could not be repaired", "tries", "since")
    return PanelTable(columns, tuple(rows[:ROWS_MAX]), "Stuck", "No repair is stuck", total=total)


def _marked(marked: list[MarkedLedger], with_marks: bool) -> PanelTable:
    rows: list[tuple[Cell, ...]] = [
        (
            LedgerLink(each.ledger_id),
            None if each.since_ms is None else Moment(each.since_ms),
            ", ".join(each.bookies) or None,
            each.reason or None,
        )
        for each in marked[:ROWS_MAX]
    ]
    empty = "No ledger is under-replicated"
    title = "Marked as under-replicated" if with_marks or not marked else "Marked as under-replicated (being read)"
    return PanelTable(("ledger", "since", "lacking on", "why it is stuck"), tuple(rows), title, empty, len(marked))
