"""Where bugs are planted, and which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.mutants.mutation import Mutation, mutations

ROOT: Final = Path(__file__).resolve().parents[2]

PLACES: Final[Mapping[str, int]] = {
    "bookkeeper.chains": 8,
    "journal_manager.journals.chain": 10,
    "journal_manager.journals.set_rules": 6,
    "journal_manager.replicas": 10,
    "segments.chain": 20,
    "segments.cursors.acked_ranges": 10,
    "segments.cursors.cursor_state": 10,
    "segments.retention.holds": 6,
    "segments.retention.retention": 12,
    "segments.producers": 12,
    "segments.publish": 24,
    "segments.read.fetch.fetch_machine": 8,
    "segments.read.source.segment_feed": 8,
    "segments.write.appends.append_machine": 8,
    "segments.write.output.append_queue": 4,
    "segments.write.appends.grouping": 8,
    "segments.write.opening": 6,
    "segments.write.segment.rolling": 8,
    "segments.write.segment.segment_machine": 8,
    "bookkeeper.access": 24,
    "bookkeeper.bookie.ownership": 16,
    "bookkeeper.auth.sasl": 10,
    "bookkeeper.encryption": 16,
    "bookkeeper.ledger.placement": 20,
    "bookkeeper.volumes": 40,
    "bookkeeper.ledger": 110,
    "bookkeeper.storage": 120,
    "bookkeeper.replication": 40,
    "bookkeeper.bookie": 40,
    "bookkeeper.leases.lease": 15,
    "spark_wal.webhdfs.files.namespace": 35,
    "spark_wal.data_source": 24,
}
"""Package or module -> how many mutations."""


def sample(places: Mapping[str, int] = PLACES, times: float = 1.0) -> dict[str, list[Mutation]]:
    """Of each place as many mutations as were asked for, spread over its functions; the same in every run.

    Raises:
        LookupError: a place is not there: it must not be passed over in silence.
    """
    return {place: _spread(_all(place), max(1, round(count * times))) for place, count in places.items()}


def modules(place: str) -> list[Path]:
    """The files of a package, or of a module.

    Raises:
        LookupError: there is none.
    """
    path = ROOT.joinpath(*place.split("."))
    if path.is_dir():
        found = sorted(path.rglob("*.py"))
    elif path.with_suffix(".py").exists():
        found = [path.with_suffix(".py")]
    else:
        raise LookupError(f"there is no package or module {place}: correct PLACES in tests/mutants/sample.py")
    return found


def _all(place: str) -> Iterator[Mutation]:
    for path in modules(place):
        yield from mutations(path)


def _spread(found: Iterator[Mutation], count: int) -> list[Mutation]:
    """First one of each function, by lot; then second ones, and so on."""
    by_function: dict[tuple[Path, str], list[Mutation]] = {}
    for mutation in sorted(found, key=lambda mutation: mutation.rank):
        by_function.setdefault((mutation.path, mutation.qualname), []).append(mutation)
    ranked = [(turn, mutation.rank, mutation) for some in by_function.values() for turn, mutation in enumerate(some)]
    return [mutation for _, _, mutation in sorted(ranked, key=lambda item: item[:2])[:count]]
