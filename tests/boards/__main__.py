"""``make boards``: every query of our board, and of StreamNative's, on a live Prometheus and a cluster under load.

It ends with status 0 if no panel of ours is empty, if those of StreamNative's are answered of which we say so, and if
an alarm fires when a bookie is stopped, and ends when it is back. With ``--published DIR``, a directory with boards in
JSON, their own queries are replayed, too. Without Prometheus, and no way to get it, it says that it was not run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bookkeeper.launchers.machine_speed import speed_text, stretch
from examples.demo_kit.cluster import DemoError
from examples.processes import Children
from tests.boards.deployed import PanelQuery, queries
from tests.boards.live import SCRAPE_S, LiveCluster
from tests.boards.prometheus import NoPrometheusError, PrometheusClient, find_or_fetch
from tests.boards.promql import named
from tests.boards.published import published

LOOKS_MAX: Final = 240
"""How often it is looked, once for each scrape, before a panel counts as empty: quantiles are those of a minute."""
RATE: Final = f"{12 * SCRAPE_S}s"


def asked(query: str) -> str:
    """A panel's query with its variables as for the choice of all."""
    return re.sub(r"\[\$__\w+\]", f"[{RATE}]", re.sub(r"\$\$?\{?(?!__)\w+\}?", ".*", query))


def lacking(client: PrometheusClient, panel: PanelQuery, names: set[str]) -> str | None:
    """Why a panel is empty; None: it shows a number. What a query puts in place of nothing does not count."""
    found = named(panel.query)
    gone = sorted(found.names - names - {"ALERTS"})
    if gone:
        return f"no series of {', '.join(gone)}"
    for pattern in found.patterns:
        if not any(re.fullmatch(pattern, name) for name in names):
            return f"no series like {pattern}"
    return None if has_number(client.query(asked(panel.query))) else "no number"


def has_number(series: list[dict[str, Any]]) -> bool:
    """Whether any series has a value that is one."""
    return any(not math.isnan(float(each["value"][1])) for each in series)


def published_in(directory: Path) -> Iterator[PanelQuery]:
    """Every query of boards in a directory that is about bookies or autorecovery."""
    for path in sorted(directory.rglob("*.json")):
        for title, query in _expressions(json.loads(path.read_text()), ""):
            if re.search(r"\b(bookie|bookkeeper_server|auditor|replication)_", query):
                yield PanelQuery(str(path.relative_to(directory)), title, query)


def _expressions(node: Any, title: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        title = node["title"] if isinstance(node.get("title"), str) else title
        if isinstance(node.get("expr"), str):
            yield title, node["expr"]
        for inner in node.values():
            yield from _expressions(inner, title)
    elif isinstance(node, list):
        for inner in node:
            yield from _expressions(inner, title)


async def look(what: str, holds: Callable[[], bool]) -> bool:
    """Look once for each scrape whether it holds; False: it never does."""
    for _ in range(LOOKS_MAX):
        if await asyncio.to_thread(holds):
            return True
        await asyncio.sleep(SCRAPE_S * stretch())
    print(f"FAILED: {what}", flush=True)
    return False


async def replay_ours(client: PrometheusClient) -> bool:
    """Whether every panel of ours shows a number, at the latest after some minutes."""
    left: dict[PanelQuery, str] = dict.fromkeys(queries(), "")
    count = len(left)

    def try_all() -> bool:
        names = client.names()
        for panel in list(left):
            why = lacking(client, panel, names)
            if why is None:
                del left[panel]
            else:
                left[panel] = why
        return not left

    good = await look("a panel is empty", try_all)
    print(f"ours: {count - len(left)} of {count} queries answered", flush=True)
    for panel, why in left.items():
        print(f"  empty: {panel.panel}: {panel.query}: {why}", flush=True)
    return good


async def replay_published(client: PrometheusClient, directory: Path | None) -> bool:
    """Whether what StreamNative's boards ask is answered exactly where we say so."""
    wrong: list[str] = []

    def try_all() -> bool:
        wrong.clear()
        for each in published():
            answered = has_number(client.query(each.query))
            if answered != (each.missing is None):
                wrong.append(f"{each.query}: {'answered, though we say not' if answered else 'not answered'}")
        return not wrong

    good = await look("a query of the published boards is not answered as we say", try_all)
    print("\n".join(f"  wrong: {line}" for line in wrong), flush=True)
    print(f"{'metric':<52} {'asked':<6} {'answered':<9} why not", flush=True)
    for each in published():
        shown = f"{each.metric}{{{each.labels}}}" if each.labels else each.metric
        kind, answer = "rate" if each.is_rate else "value", "no" if each.missing else "yes"
        print(f"{shown:<52} {kind:<6} {answer:<9} {each.missing or ''}", flush=True)
    if directory:
        await replay_verbatim(client, list(published_in(directory)))
    return good


async def replay_verbatim(client: PrometheusClient, panels: list[PanelQuery]) -> None:
    """Say of each query whether it was answered at any time within a minute."""
    left = set(panels)
    for _ in range(60):
        left -= {each for each in left if await asyncio.to_thread(answers, client, each.query)}
        await asyncio.sleep(SCRAPE_S)
    for panel in panels:
        answer = "no" if panel in left else "yes"
        print(f"{answer:<4} {panel.board}: {panel.panel}: {' '.join(panel.query.split())}", flush=True)


def answers(client: PrometheusClient, query: str) -> bool:
    """Whether a query with variables has a number now."""
    return has_number(client.query(asked(query)))


async def alarm(cluster: LiveCluster, client: PrometheusClient) -> bool:
    """Whether the alarm fires when a bookie is stopped, and ends when it is back."""
    await cluster.parts.stop("b3")
    fires = await look("BookieGone does not fire", lambda: client.alarms().get("BookieGone") == "firing")
    print(f"b3 was stopped; alarms: {client.alarms()}", flush=True)
    await cluster.start_bookie("b3")
    cluster.scrape_again()  # its pages may have another port
    ends = await look("BookieGone does not end", lambda: "BookieGone" not in client.alarms())
    print(f"b3 is back; alarms: {client.alarms()}", flush=True)
    return fires and ends


async def run(directory: Path, program: Path, published_boards: Path | None) -> int:
    """The story. Returns the exit status."""
    logs = directory / "logs"
    logs.mkdir(parents=True)
    async with Children(logs) as children:
        cluster = LiveCluster(directory, children)
        await cluster.start()
        client = await cluster.start_prometheus(program)
        async with cluster.load():
            good = [await replay_ours(client), await replay_published(client, published_boards)]
            good.append(await alarm(cluster, client))
        for each in client.targets():
            if each["health"] != "up" and each["labels"]["job"] != "bookies":
                print(f"not scraped: {each['labels']}: {each['lastError']}", flush=True)
                good.append(False)
        if cluster.problems:
            print(f"the load met {len(cluster.problems)} errors, the last: {cluster.problems[-1]}", flush=True)
    print(f"boards: {'yes' if all(good) else 'no'}", flush=True)
    return 0 if all(good) else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="make boards", description=__doc__)
    parser.add_argument("--published", type=Path, help="a directory with boards in JSON that are replayed, too")
    parser.add_argument("--dir", type=Path, help="an empty directory for everything")
    arguments = parser.parse_args()
    try:
        program = find_or_fetch("prometheus")
    except NoPrometheusError as missing:
        print(f"boards: not run: {missing}")
        return 0
    directory = (arguments.dir or Path(tempfile.mkdtemp(prefix="bk-boards-"))).resolve()
    print(f"{speed_text()}; everything is in {directory}", flush=True)
    try:
        return asyncio.run(run(directory, program, arguments.published))
    except DemoError as error:
        print(f"boards: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
