"""Bugs of the encryption of entries; a part of :data:`tests.simulation.bugs.bugs.BUGS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import bookkeeper.client.ledgers.ledger_creation as ledger_creation
from bookkeeper.client.write.advanced_handle import AdvancedHandle
from bookkeeper.encryption import EncryptionConfig, EntrySealer, NewLedgerKey, new_ledger_key
from bookkeeper.encryption.ciphers import seal_run
from bookkeeper.seams import Rng
from bookkeeper.testing.patches import Patch
from tests.simulation.bugs.bug import Bug, Plant, bug_into
from tests.simulation.plan import FIRST_WITH_ENCRYPTION

ENCRYPTION_BUGS: Final[dict[str, Bug]] = {}
"""By name, in the order of this file."""


def _bug(name: str, within: int) -> Callable[[Plant], Plant]:
    return bug_into(ENCRYPTION_BUGS, name, "X24", within, FIRST_WITH_ENCRYPTION)


@_bug("one-key-for-all-ledgers", 20)
def _one_key_for_all_ledgers(patch: Patch) -> None:
    """A client makes one data key and uses it for all of its ledgers."""
    kept: list[NewLedgerKey] = []

    async def same(config: EncryptionConfig, rng: Rng) -> NewLedgerKey:
        if not kept:
            kept.append(await new_ledger_key(config, rng))
        return kept[0]

    patch(ledger_creation, "new_ledger_key", same)


@_bug("sealed-when-offered", 40)
def _sealed_when_offered(patch: Patch) -> None:
    """An entry is sealed when its caller gives it, and not when it is sent: one that is withdrawn while it waits for
    room, and given again with other bytes, is sealed twice."""
    new, init = AdvancedHandle._new, EntrySealer.__init__
    sealers: dict[int, tuple[Any, int]] = {}

    def remembered(self: EntrySealer, ledger_id: int, aead: Any, compression: Any) -> None:
        init(self, ledger_id, aead, compression)
        sealers[ledger_id] = (aead, ledger_id)

    def early(self: AdvancedHandle, entry_id: int, payload: Any) -> Any:
        entry = new(self, entry_id, payload)
        if self.id in sealers:
            aead, ledger_id = sealers[self.id]
            seal_run(aead, ledger_id, entry_id, [payload])
        return entry

    patch(EntrySealer, "__init__", remembered)
    patch(AdvancedHandle, "_new", early)
