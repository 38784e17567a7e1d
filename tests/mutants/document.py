"""docs/mutants.md: how many planted bugs were noticed, and the survivors with their reasons."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutants.mutation import Mutation
from tests.mutants.sample import ROOT
from tests.mutants.session import Outcome

PAGE: Final = ROOT / "docs" / "mutants.md"
REASONS: Final = Path(__file__).with_name("reasons.toml")

_HEAD: Final = (
    "# Planted bugs\n\n"
    "`make mutants` changes one line of the code that keeps the promises: a condition is negated, a statement deleted, "
    "an addition is off by one, and so on.\n"
    "It runs the tests of the core that reach the line and notes whether one fails; then it goes on to the next bug.\n"
    "A bug that nobody notices is a promise that nobody guards.\n"
    "Bugs are chosen by lot, spread over the functions of a package, the same in each run as long as the code is the "
    "same.\n"
    "The tests with real processes are left out: what they alone would notice counts as survived.\n\n"
)


def reasons() -> dict[str, str]:
    """Survivor, as it is printed -> why no test notices it."""
    return dict(tomllib.loads(REASONS.read_text())["reasons"])


def page(
    chosen: Mapping[str, Sequence[Mutation]],
    outcomes: Sequence[Outcome],
    known: Mapping[str, str],
) -> tuple[str, float, list[Outcome]]:
    """The page; the share that was noticed; and the survivors without a reason."""
    by_mutation = {id(outcome.mutation): outcome for outcome in outcomes}
    lines = [_HEAD, "| package | planted | noticed | survived | share |\n|---|---:|---:|---:|---:|\n"]
    for place, mutations in chosen.items():
        lines.append(_row(f"`{place}`", [by_mutation[id(mutation)] for mutation in mutations]))
    lines.append(_row("**all**", outcomes))
    survivors = [outcome for outcome in outcomes if not outcome.killed_by]
    lines.append("\n## Survivors\n\n")
    lines.append("| where | what was changed | tests that reach it | why no test notices |\n|---|---|---:|---|\n")
    for outcome in sorted(survivors, key=lambda one: (str(one.mutation.path), one.mutation.line)):
        lines.append(_survivor(outcome, known))
    share = 1 - len(survivors) / max(1, len(outcomes))
    return "".join(lines), share, [outcome for outcome in survivors if outcome.mutation.key not in known]


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    killed = sum(bool(outcome.killed_by) for outcome in outcomes)
    share = 100 * killed / max(1, len(outcomes))
    return f"| {name} | {len(outcomes)} | {killed} | {len(outcomes) - killed} | {share:.1f} % |\n"


def _survivor(outcome: Outcome, known: Mapping[str, str]) -> str:
    mutation: Mutation = outcome.mutation
    where = f"`{_relative(mutation.path)}`, `{mutation.qualname}`"
    what = f"{mutation.kind}: `{_short(mutation.before)}` → `{_short(mutation.after)}`"
    return f"| {where} | {what} | {outcome.tests} | {known.get(mutation.key, '**none known**')} |\n"


def _short(text: str) -> str:
    text = text if len(text) <= 90 else text[:87] + "…"
    return text.replace("|", "\\|")


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))
