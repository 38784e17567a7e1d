"""The pages of panels. Pure."""

from __future__ import annotations

from bookkeeper.console.blocks import show_blocks
from bookkeeper.console.panels import Panel, PanelPage, Tone
from bookkeeper.console.resident import CachedValue
from bookkeeper.console.views.view import PageView, ViewRequest, age_of, problem_of, waiting


def panel_path(name: str) -> str:
    """Where a panel's page is."""
    return f"/panels/{name}"


def panel_page(panel: Panel, kept: CachedValue[PanelPage], asked: ViewRequest) -> PageView:
    """A panel's page as it was read last."""
    nav = panel_path(panel.name)
    if kept.value is None:
        return waiting(panel.title, nav, kept, "It is being read")
    page = kept.value
    return PageView(
        panel.title,
        nav,
        tuple(show_blocks(page.blocks, asked.address, asked.now_ms, panel.name)),
        page.summary,
        page.tone,
        age_of(kept, asked.now_ms),
        problem_of(kept),
        asked.refresh_s,
    )


def detail_page(panel: Panel, key: str, page: PanelPage, asked: ViewRequest) -> PageView:
    """A panel's page of one thing."""
    blocks = tuple(show_blocks(page.blocks, asked.address, asked.now_ms, panel.name))
    return PageView(
        f"{panel.title}: {key}",
        panel_path(panel.name),
        blocks,
        page.summary,
        page.tone,
        "read now",
        refresh_s=asked.refresh_s * 2,
    )


def panel_line(panel: Panel, kept: CachedValue[PanelPage]) -> tuple[str, str, str, Tone]:
    """What the first page says of a panel: path, title, summary, tone."""
    if kept.value is None:
        said = kept.problem or "not read yet"
        return panel_path(panel.name), panel.title, said, Tone.WARN if kept.problem else Tone.PLAIN
    return panel_path(panel.name), panel.title, kept.value.summary, kept.value.tone
