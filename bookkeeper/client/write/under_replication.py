"""What a writer knows to be missing somewhere, and the mark it leaves (W14).

A bookie that was away while a ledger grew lacks what was confirmed without it. When it is back, or replaced, and once
more at close, the ledger is entered into the cluster's list of under-replicated ledgers, in Apache BookKeeper's own
form, so that whoever re-replicates, their workers or ours, finds it, also if the writer never gets to its close. The
mark is a hint: repair looks for itself which entries are missing where.

    <root>/underreplication/ledgers/0000/0000/0000/0005/urL0000000005
        replica: "192.0.2.1:3181"
        ctime: 1700000000000
"""

from __future__ import annotations

import logging

from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import MetadataStore

_log = logging.getLogger(__name__)


class MissingCopies:
    """Which bookies lack how many confirmed entries of one ledger."""

    def __init__(self) -> None:
        self.ranges: dict[BookieId, list[tuple[int, int]]] = {}
        """Bookie -> (first, last) of what it lacks its share of."""

    def note(self, bookie: BookieId, first: int, last: int) -> None:
        ranges = self.ranges.setdefault(bookie, [])
        if (first, last) not in ranges:
            ranges.append((first, last))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __str__(self) -> str:
        return "; ".join(
            f"{bookie} lacks its share of {', '.join(f'{first}..{last}' for first, last in ranges)}"
            for bookie, ranges in self.ranges.items()
        )


def mark_path(root: str, ledger_id: LedgerId) -> str:
    """Where the mark of a ledger lies in the store."""
    digits = f"{ledger_id:016x}"
    parts = "/".join(digits[i : i + 4] for i in range(0, 16, 4))
    return f"{root}/underreplication/ledgers/{parts}/urL{ledger_id:010d}"


def encode_mark(bookies: list[BookieId], ctime_ms: int) -> bytes:
    """The text of a mark (protobuf's text form of UnderreplicatedLedgerFormat)."""
    return ("".join(f'replica: "{bookie}"\n' for bookie in bookies) + f"ctime: {ctime_ms}\n").encode()


def marked_bookies(mark: bytes) -> list[BookieId]:
    """The bookies that a mark names."""
    lines = (line.strip() for line in mark.decode(errors="replace").splitlines())
    return [BookieId(line.split(":", 1)[1].strip().strip('"')) for line in lines if line.startswith("replica:")]


async def mark(store: MetadataStore, root: str, ledger_id: LedgerId, missing: MissingCopies, now_ms: int) -> None:
    """Enter the ledger into the list, adding to a mark that is there. Raises: MetadataError."""
    path = mark_path(root, ledger_id)
    while True:
        try:
            await store.create(path, encode_mark(list(missing.ranges), now_ms), parents=True)
        except KeyExistsError:
            pass
        else:
            return
        try:
            found = await store.get(path)
            there = marked_bookies(found.value)
            news = [bookie for bookie in missing.ranges if bookie not in there]
            if news:
                await store.set(path, encode_mark(there + news, now_ms), found.version)
        except (NoSuchKeyError, MetadataConflictError):
            continue
        return
