"""``make demo-tenants``: two tenants share a cluster, and nobody gets what is not his."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bookkeeper.amounts import counted
from examples.demo_kit.command import Demo, run_demo
from examples.demo_tenants.story import TenantsFacts, TenantsPlan, TenantsStory
from examples.demo_tenants.verdict import Loot
from examples.demo_tenants.view import TenantsPicture, TenantsView
from examples.processes import Children


def story(arguments: argparse.Namespace, directory: Path, children: Children, console: Console) -> TenantsStory:
    plan = TenantsPlan(directory=directory, metadata=arguments.metadata, sabotage=arguments.sabotage, pause_s=3.0)
    if arguments.short:
        plan = replace(plan, pause_s=0.2, flood_s=2.0)
    return TenantsStory(plan, children, TenantsView(TenantsPicture(), console))


def last_line(found: Loot, facts: TenantsFacts) -> str:
    """The one line that says it."""
    said = [f"{facts.tried} attacks", *(f"{count} {what}" for what, count in found.taken.items())]
    said += [f"{counted(found.own, 'entry')} of their own read back", f"{len(found.lost)} of their own lost"]
    return f"tenants: nobody got what was not his: {'yes' if found.good else 'no'} ({', '.join(said)})"


def rows(found: Loot, facts: TenantsFacts) -> list[tuple[str, str]]:
    """What was tried, and what came of it."""
    return [
        ("attacks", str(facts.tried)),
        *((what, str(count)) for what, count in found.taken.items()),
        ("acknowledged in the flood", f"{facts.flood} in {facts.flood_s:.1f} s"),
        ("got with the stolen token before anybody knew", str(facts.stolen_before)),
        ("entries of their own that read back", str(found.own)),
        ("of their own lost, or refused", str(len(found.lost))),
    ]


def main() -> int:
    return run_demo(
        Demo(
            name="tenants",
            about=__doc__ or "",
            sabotage="without an access policy: must end in 'no'",
            short="half a minute: no quiet between the attacks",
            story=story,
            rows=rows,
            last_line=last_line,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
