"""``python -m tests.power_cuts 100``: see the package."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from bookkeeper import real
from tests.faultlog import put_section
from tests.power_cuts.campaign import CUTS_A_VOLUME, Tally, campaign
from tests.power_cuts.sabotage import SABOTAGE
from tests.power_cuts.volume import why_not

TITLE: Final = "Power cuts"
KINDS: Final = [("ext4", ""), ("ext4", "data=writeback"), ("ext4", "data=journal"), ("xfs", "")]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.power_cuts", description=__doc__)
    parser.add_argument("cuts", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=None, help="of what is done [default: a new one, printed]")
    parser.add_argument(
        "--volume-cuts",
        type=int,
        default=CUTS_A_VOLUME,
        help="after so many another bookie begins on an empty volume [default: %(default)s]",
    )
    parser.add_argument("--sabotage", choices=SABOTAGE, help="a bookie with a bug: it has to be noticed")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    arguments = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    skipped = {kind: reason for kind in dict.fromkeys(kind for kind, _ in KINDS) if (reason := why_not(kind))}
    for kind, reason in skipped.items():
        print(f"SKIPPED: {kind}: {reason}", flush=True)
    kinds = [each for each in KINDS if each[0] not in skipped]
    if not kinds:
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP):  # as with Ctrl-C, what is mounted is unmounted
        signal.signal(number, _end)
    print(f"seed {seed}", flush=True)
    tally = real.run(
        campaign(
            arguments.cuts,
            seed,
            kinds,
            arguments.sabotage,
            of_volume=arguments.volume_cuts,
            tell=lambda line: print(line, flush=True),
        )
    )
    print(tally.table())
    print("\n".join(tally.problems[:50]) or "every start has found what was acknowledged")
    if arguments.write is not None and not arguments.sabotage:
        put_section(arguments.write, TITLE, document(tally, seed, list(skipped)))
    return 1 if tally.problems else 0


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def document(tally: Tally, seed: int, skipped: list[str]) -> str:
    """The section of the page."""
    lines = [
        f"Made by `make power-cuts N={sum(tally.cuts.values())}` (seed {seed}, which does not repeat the moments).",
        "A bookie's process runs on a loop-mounted file system, whose power is cut.",
        "Nothing more reaches the disk, but for the file system's own journal in a quarter of the cuts; the process is "
        "killed, and the volume mounted again.",
        "After some cuts another bookie begins on an empty volume.",
        "A start has to find what was acknowledged, and may have no doubts.",
        "The caches of a device, and what is reordered or torn below the file system, are not part of it.",
        f"Wrong: {len(tally.problems) or 'none'}.",
        *(f"No {kind}: this machine could not mount it." for kind in skipped),
        "",
        tally.table(),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
