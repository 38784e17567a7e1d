"""Owners of ledgers that their own metadata do not name: by a claim, or by a hand-over.

    <root>-py/access/claims/<id div 10000>/<id mod 10000>   whoever first wrote a ledger that names no owner
    <root>-py/access/handed-over                            JSON: the ledgers that have got another owner

A claim is created once and stays; so all bookies of a ledger have one owner. A hand-over counts before a claim, and
before what the ledger's metadata say. The cluster's access rules decide who may write here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bookkeeper.access import Resource
from bookkeeper.access.ownership import NO_OWNER, checked_owner, owner_in
from bookkeeper.errors import (
    ConfigError,
    KeyExistsError,
    MetadataConflictError,
    MetadataFormatError,
    NoSuchKeyError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.access_policy import ACCESS
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import (
    MetadataStore,
    Watch,
    ensure_deleted,
    get_or_none,
    settled_create,
    settled_set,
)

FORMAT: Final = 1
HANDED_OVER_MAX: Final = 512 * 1024
"""Bytes of the record of hand-overs at most: a value of ZooKeeper has 1 MiB."""
_PART: Final = 10_000


class LedgerOwners:
    """The records of one cluster. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths
        self.path: Final = paths.own(ACCESS, "handed-over")

    def _claim(self, ledger_id: LedgerId) -> str:
        return self._paths.own(ACCESS, "claims", str(ledger_id // _PART), str(ledger_id % _PART))

    async def claimed_by(self, ledger_id: LedgerId) -> Resource | None:
        """Who has claimed a ledger; None: nobody. Raises: MetadataFormatError."""
        path = self._claim(ledger_id)
        found = await get_or_none(self._store, path)
        return _owner(found.value, path) if found is not None else None

    async def claim(self, ledger_id: LedgerId, owner: Resource) -> Resource:
        """Claim a ledger. Returns whose it is now: another one may have come first. Raises: MetadataFormatError."""
        path = self._claim(ledger_id)
        try:
            await settled_create(self._store, path, str(owner).encode(), parents=True)
        except KeyExistsError:
            found = await get_or_none(self._store, path, fresh=True)
            return _owner(found.value, path) if found is not None else owner
        return owner

    async def forget(self, ledger_id: LedgerId) -> None:
        """Remove the claim of a ledger that is gone. Idempotent."""
        await ensure_deleted(self._store, self._claim(ledger_id))

    async def handed_over(self) -> dict[LedgerId, Resource]:
        """The ledgers that were handed over, after a sync, with their owners. Raises: MetadataFormatError."""
        found = await get_or_none(self._store, self.path, fresh=True)
        return _decode(found.value, self.path) if found is not None else {}

    async def owner_of(self, ledger_id: LedgerId, custom: Mapping[str, bytes]) -> Resource:
        """Whose a ledger with this custom metadata is now, as bookies find it: handed over, named, or claimed;
        NO_OWNER: nobody's. Raises: MetadataFormatError."""
        owner = (await self.handed_over()).get(ledger_id) or owner_in(custom)
        return owner or await self.claimed_by(ledger_id) or NO_OWNER

    async def hand_over(self, ledgers: Iterable[LedgerId], owner: Resource, gone: Iterable[LedgerId] = ()) -> None:
        """Give ledgers another owner. ``gone``: ledgers that exist no more, to be left out of the record.

        Raises:
            ConfigError: the record would be too large.
            MetadataFormatError: the record cannot be read.
            MetadataUnavailableError: it is not known whether it was written.
        """
        wanted, left_out = list(ledgers), set(gone)
        while True:
            found = await get_or_none(self._store, self.path, fresh=True)
            before = _decode(found.value, self.path) if found is not None else {}
            kept = {ledger: whose for ledger, whose in before.items() if ledger not in left_out}
            data = _encode(kept | dict.fromkeys(wanted, owner))
            try:
                if found is None:
                    await settled_create(self._store, self.path, data, parents=True)
                else:
                    await settled_set(self._store, self.path, data, found.version, created_txn=found.created_txn)
            except (MetadataConflictError, KeyExistsError, NoSuchKeyError):
                continue
            return

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when a ledger was handed over."""
        return self._store.watch(self.path, callback)


def _owner(value: bytes, path: str) -> Resource:
    try:
        return checked_owner(value.decode())
    except (ConfigError, UnicodeDecodeError) as error:
        raise MetadataFormatError(f"{path} names no owner: {error}") from error


def _encode(owners: Mapping[LedgerId, Resource]) -> bytes:
    ledgers = {str(ledger): str(owner) for ledger, owner in owners.items()}
    data = json.dumps({"format": FORMAT, "ledgers": ledgers}, ensure_ascii=False, separators=(",", ":")).encode()
    if len(data) > HANDED_OVER_MAX:
        raise ConfigError(
            f"the record of ledgers that were handed over would have {len(data)} bytes, and {HANDED_OVER_MAX} are "
            "allowed: grant rights on the present owner's ledgers instead"
        )
    return data


def _decode(data: bytes, path: str) -> dict[LedgerId, Resource]:
    try:
        body: Any = json.loads(data)
        if body["format"] != FORMAT:
            raise ValueError(f"it has format {body['format']}, and this version knows {FORMAT}")
        return {LedgerId(int(ledger)): checked_owner(owner) for ledger, owner in body["ledgers"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, ConfigError, RecursionError) as error:
        raise MetadataFormatError(f"{path} cannot be read: {error}") from error
