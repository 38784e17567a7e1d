"""The section of docs/benchmarks.md that a run writes, between two markers, and its pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import median
from typing import Any, Final

from benchmarks.apache.charts import Series, line_chart
from benchmarks.apache.rows import KB, OURS, SHIPPED, TUNED
from benchmarks.apache.summary import LATENCIES, Found, Line, shown
from benchmarks.processes import ROOT
from benchmarks.report import number

BEGIN: Final = "<!-- bench-apache: written by `make bench-apache`, down to the end marker -->"
END: Final = "<!-- bench-apache: end -->"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
PICTURES: Final = ROOT / "docs" / "pictures"

_COLOURS: Final = {OURS: "#0b6e4f", SHIPPED: "#c0392b", TUNED: "#d98200"}
_NAMES: Final = {OURS: "ours", SHIPPED: "Apache, shipped", TUNED: "Apache, tuned"}
_WINDOWS: Final = (1, 10, 100, 1000)
_VERDICTS: Final = {"goal": "goal", "must": "must", "MISSED": "*missed*", "": ""}
_ELSEWHERE: Final = {
    "slow-sync": "With 1 ms added to every sync",
    "far": "With 0.5 ms of network round trip",
    "tls": "With TLS on",
}

_HOW: Final = """\
`make bench-apache` starts three clusters of three bookies on one disk and one ZooKeeper: ours, Apache's {version} with its settings as shipped, and Apache's tuned for latency (`journalFlushWhenQueueEmpty=true`, `journalMaxGroupWaitMSec=1`).
Each is measured with its own client: E3/Qw3/Qa2, CRC32C, journals synced, one future an entry, one ledger.
Runs take turns, another side begins each round; figures are medians of the rounds (lowest–highest).
Java's virtual machines get the heap and collector of the release's scripts ({heap} MB) and are warmed up with the same load first.
Its client's throttle is off, and `maxPendingAddRequestsPerThread` is 0, without which its client closes ledgers at full load.
CPU an entry is that of the client and all three bookies.
The ratio is ours over the better of Apache's two, over the same protocol.
Single reads are one call of the application an entry: our client fetches neighbours that are asked for at once together, Java's sends a request for each."""  # noqa: E501


_LEGEND: Final = """\
Rate (lowest–highest), p50 / p99, CPU an entry; the ratios in this order, bold where ours is better: of rates the higher is, of times and CPU the lower.
The last column: what other processes used meanwhile, in the middle."""  # noqa: E501


def write(found: Found, records: Iterable[dict[str, Any]]) -> None:
    """Replace what is between the markers (the first time: append it), and the pictures."""
    PICTURES.mkdir(exist_ok=True)
    pictures = _pictures(found)
    for name, text in pictures.items():
        (PICTURES / name).write_text(text)
    page = PAGE.read_text()
    PAGE.write_text(placed(page, section(found, list(records), list(pictures))))


def placed(page: str, text: str) -> str:
    """The page with the section in it."""
    body = f"{BEGIN}\n\n{text}\n\n{END}"
    if BEGIN not in page:
        return f"{page.rstrip()}\n\n{body}\n"
    before, _, rest = page.partition(BEGIN)
    return f"{before}{body}{rest.partition(END)[2]}"


def section(found: Found, records: Sequence[dict[str, Any]], pictures: Sequence[str]) -> str:
    """The section's text."""
    from examples.apache_servers.jars import VERSION

    release = next((record["apache"] for record in records if "apache" in record), VERSION)  # older ones do not say
    heap = next((record["heap_mb"] for record in records if "heap_mb" in record), 1024)
    parts = [
        f"## Side by side with Apache BookKeeper {release}",
        _HOW.format(version=release, heap=heap),
        _noise(found),
    ]
    parts.append("### What was aimed at")
    parts.append(_aims(found.aimed()))
    parts += [f"![{name.removesuffix('.svg').replace('-', ' ')}](pictures/{name})" for name in pictures]
    parts.append("### Every row")
    parts.append(_LEGEND)
    parts.append(_lost(found))
    parts.append(_rows(found, "plain"))
    for key, title in _ELSEWHERE.items():
        if any(line.surroundings == key for line in found.lines):
            parts += [f"### {title}", _rows(found, key)]
    if found.failed:
        parts.append("Runs that failed; each was tried once more:")
        parts.append("\n".join(f"* {failure}" for failure in found.failed))
    return "\n\n".join(part for part in parts if part)


def _noise(found: Found) -> str:
    parts = []
    if found.machine:
        parts.append(f"The machine at the beginning: {found.machine[0]}.")
        if len(found.machine) > 1:
            parts.append(f"At the end: {found.machine[-1]}.")
    if found.others:
        busy = sum(one > 0.25 for one in found.others)
        parts.append(
            "What other processes (ZooKeeper, the clusters that had to wait, everything else) used during a run: "
            f"{median(found.others):.2f} cores in the middle, {max(found.others):.2f} at most, more than a quarter of "
            f"a core in {busy} of {len(found.others)} runs."
        )
    return "\n".join(parts)


def _lost(found: Found) -> str:
    lost = [line for line in found.lines if line.won is False]
    if not lost:
        return ""
    rows = ["Rows that Apache wins, and by which figures (ours / Apache):", ""]
    for title, lines in groupby(lost, key=lambda line: f"{line.title}{_where(line)}"):
        figures = ", ".join(
            f"{shown(line)[0].removeprefix(line.title).lstrip(':, ')} {line.ratio:.2f}" for line in lines
        )
        rows.append(f"* {title}: {figures}")
    return "\n".join(rows)


def _where(line: Line) -> str:
    """What is special about the surroundings of a line, if anything is."""
    title = _ELSEWHERE.get(line.surroundings, "")
    return f", {title[0].lower()}{title[1:]}" if title else ""


def _aims(lines: Sequence[Line]) -> str:
    """A line a figure, with ranges and verdicts."""
    rows = []
    for line in lines:
        cells = shown(line)
        cells[4] = f"**{cells[4]}**" if cells[4] else ""
        cells[7] = _VERDICTS[cells[7]]
        rows.append(cells)
    return _table(["figure", "ours", "Apache, shipped", "Apache, tuned", "ours / Apache", "goal", "must", ""], rows)


def _rows(found: Found, surroundings: str) -> str:
    """A line a row, all its figures in a cell: rate and its range; p50 / p99; CPU an entry."""
    rows = []
    here = [line for line in found.lines if line.surroundings == surroundings]
    for (key, title), together in groupby(here, key=lambda line: (line.row.key, line.title)):
        lines = list(together)
        cells = ["; ".join(_cell(lines, side)) or "–" for side in (OURS, SHIPPED, TUNED)]
        ratios = ", ".join(_ratio(line) for line in lines if line.ratio is not None)
        others = found.others_by_row.get((surroundings, key))
        rows.append([title, *cells, ratios, f"{median(others):.2f}" if others else ""])
    return _table(["row", "ours", "Apache, shipped", "Apache, tuned", "ours / Apache", "others, cores"], rows)


def _cell(lines: Sequence[Line], side: str) -> list[str]:
    """One side's figures: of the latencies and of CPU only the medians."""
    there = {line.measure.key: line.seen[side] for line in lines if side in line.seen}
    units = {line.measure.key: line.measure.unit for line in lines}
    parts = []
    if "rate" in there:
        parts.append(f"{there['rate'].text()}{'' if units['rate'] == '/s' else ' '}{units['rate']}")
    spans = [number(there[key].middle / 1000) for key in LATENCIES if key in there]
    if spans:
        parts.append(f"{' / '.join(spans)} ms")
    for key, seen in there.items():
        if key not in ("rate", *LATENCIES):
            parts.append(f"{number(seen.middle) if key == 'cpu_us' else seen.text()} {units[key]}")
    return parts


def _ratio(line: Line) -> str:
    """In the order of a cell's figures; bold where ours is better."""
    text = f"{line.ratio:.2f}"
    return f"**{text}**" if line.won else text


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _pictures(found: Found) -> dict[str, str]:
    """File name -> SVG; only those there are figures for."""
    both = [("v3", False), ("v2", True)]
    charts = {
        "adds-by-window.svg": (
            "Adds of 1 KB, one ledger",
            "adds a second",
            [s for p, dashed in both for s in _by_window(found, "rate", p, dashed, 1.0, f" {p}")],
            lambda value: f"{value:,.0f}",
        ),
        "latency-by-window.svg": (
            "Latency of adds of 1 KB, protocol v3",
            "milliseconds; solid: p50, dashed: p99",
            [
                *_by_window(found, "p50_us", "v3", False, 1e-3, ", p50"),
                *_by_window(found, "p99_us", "v3", True, 1e-3, ", p99"),
            ],
            lambda value: f"{value:g}",
        ),
        "cpu-by-window.svg": (
            "CPU an entry of 1 KB, client and three bookies",
            "microseconds",
            [s for p, dashed in both for s in _by_window(found, "cpu_us", p, dashed, 1.0, f" {p}")],
            lambda value: f"{value:,.0f}",
        ),
    }
    across = "adds in flight"
    return {name: line_chart(t, across, up, lines, tell) for name, (t, up, lines, tell) in charts.items() if lines}


def _by_window(found: Found, measure: str, protocol: str, dashed: bool, scale: float, suffix: str) -> list[Series]:
    series = []
    for side in (OURS, SHIPPED, TUNED):
        points = []
        for window in _WINDOWS:
            line = found.one("plain", f"add-{KB}-{window}-{protocol}", measure)
            if line is not None and (seen := line.seen.get(side)) is not None and seen.low > 0:
                points.append((float(window), seen.middle * scale, seen.low * scale, seen.high * scale))
        if len(points) > 1:
            series.append(Series(f"{_NAMES[side]}{suffix}", _COLOURS[side], points, dashed))
    return series
