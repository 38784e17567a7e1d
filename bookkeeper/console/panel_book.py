"""Finds the panels of installed packages, and keeps the newest page of each."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from bookkeeper.console.panels import (
    DETAIL_S,
    PANEL_GROUP,
    SNAPSHOT_S,
    Panel,
    PanelContext,
    PanelPage,
    wrong_page,
)
from bookkeeper.console.resident import Resident
from bookkeeper.errors import BookKeeperError, in_words

log = logging.getLogger(__name__)

EVERY_S: Final = 10.0
"""Seconds after which a panel's page is made again, while somebody looks at it."""
NAME: Final = re.compile(r"[a-z0-9-]{1,40}")


class PanelError(BookKeeperError):
    """A panel cannot show what it is asked for. The text is for whoever looks."""


@dataclass(frozen=True, slots=True)
class UnusablePanel:
    """A panel that was found and cannot be used."""

    name: str
    problem: str


def load_panels(found: Iterable[EntryPoint] | None = None) -> tuple[list[Panel], list[UnusablePanel]]:
    """The panels of the installed packages, by title, and those that cannot be used.

    ``found``: where they are; None: this searches all installed packages.
    """
    panels: dict[str, Panel] = {}
    unusable: list[UnusablePanel] = []
    for entry in sorted(entry_points(group=PANEL_GROUP) if found is None else found, key=lambda each: each.name):
        problem = _load(entry, panels)
        if problem:
            log.warning("the console shows no panel %r: %s", entry.name, problem)
            unusable.append(UnusablePanel(entry.name, problem))
    return sorted(panels.values(), key=lambda each: each.title), unusable


def _load(entry: EntryPoint, panels: dict[str, Panel]) -> str:
    """Load one. Returns what is wrong with it; empty: nothing."""
    try:
        panel = entry.load()
    except ModuleNotFoundError as error:
        return f"it needs the Python package {error.name}, which is not installed"
    except Exception as error:  # other people's code
        return f"it cannot be loaded: {in_words(error)}"
    if not isinstance(panel, Panel):
        return f"{entry.value} is no panel: it lacks name, title, snapshot or detail"
    if not NAME.fullmatch(panel.name):
        return f"its name {panel.name!r} must be of small letters, digits and hyphens"
    if panel.name in panels:
        return f"there is another panel of the name {panel.name}"
    panels[panel.name] = panel
    return ""


class PanelBook:
    """The panels of one console. :meth:`run` on the loop."""

    def __init__(self, panels: Iterable[Panel], unusable: Iterable[UnusablePanel], context: PanelContext) -> None:
        self._context = context
        self._panels = {each.name: each for each in panels}
        self.unusable = tuple(unusable)
        self._residents = {
            name: Resident(
                partial(self._snapshot, panel),
                context.clock,
                every_s=EVERY_S,
                idle_s=2 * EVERY_S,
                patience_s=SNAPSHOT_S,
            )
            for name, panel in self._panels.items()
        }

    def __iter__(self) -> Iterator[Panel]:
        return iter(self._panels.values())

    def get(self, name: str) -> Panel | None:
        """The panel of a name."""
        return self._panels.get(name)

    def resident(self, name: str) -> Resident[PanelPage]:
        """Its page, which is made again while somebody looks at it."""
        return self._residents[name]

    async def run(self) -> None:
        """Make pages until cancelled."""
        await asyncio.gather(*(resident.run() for resident in self._residents.values()))

    async def detail(self, name: str, key: str) -> PanelPage | None:
        """The page of one thing; None: there is none.

        Raises:
            PanelError: it took too long, or is no page.
            BookKeeperError, OSError: as the panel raises them.
        """
        panel = self._panels[name]
        try:
            async with asyncio.timeout(DETAIL_S):
                page = await panel.detail(self._context, key)
        except TimeoutError as error:
            raise PanelError(f"it took longer than {DETAIL_S:g} s") from error
        return None if page is None else _right(name, page)

    async def _snapshot(self, panel: Panel) -> PanelPage:
        return _right(panel.name, await panel.snapshot(self._context))


def _right(name: str, page: PanelPage) -> PanelPage:
    if problem := wrong_page(page):
        log.error("the panel %s of the console gave a page that cannot be shown: %s", name, problem)
        raise PanelError(f"the panel gave a page that cannot be shown: {problem}")
    return page
