"""Sections of docs/faultlog.md that are not the simulator's: each command writes its own."""

from __future__ import annotations

from pathlib import Path


def put_section(page: Path, title: str, text: str) -> None:
    """Put a section into a page, in the place of the one of that title, or at the end."""
    before = page.read_text() if page.exists() else ""
    heading = f"## {title}\n"
    head, found, rest = before.partition(f"\n{heading}") if not before.startswith(heading) else ("", heading, before)
    following = rest.find("\n## ")
    after = rest[following:] if found and following >= 0 else ""
    page.write_text(f"{head.rstrip()}\n\n{heading}\n{text.strip()}\n{after}")
