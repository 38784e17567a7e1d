"""The access policy, and what tenants have: one record each, for the whole cluster.

    <root>-py/access/policy    who may do what (bookkeeper.access.policy_format)
    <root>-py/access/usage     how much tenants and owners have, as it was counted last (bookkeeper.access.usage)

Who may write here decides about everything: the cluster's access rules are the last word (ZooKeeper's access lists).
Without a policy nobody is asked. Java's bookies do not know it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bookkeeper.access import Policy, PolicyChange, Usage, decode_policy, encode_policy
from bookkeeper.errors import KeyExistsError, MetadataConflictError, MetadataFormatError, NoSuchKeyError
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import (
    MetadataStore,
    Versioned,
    Watch,
    get_or_none,
    once_more,
    put,
    settled_create,
    settled_set,
)

ACCESS: Final = "access"


class AccessPolicies:
    """The records of one cluster. Methods raise MetadataError."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self.path: Final = paths.own(ACCESS, "policy")
        self.usage_path: Final = paths.own(ACCESS, "usage")

    async def read(self) -> Versioned[Policy] | None:
        """Read the policy after a sync; None: there is none.

        Raises:
            MetadataFormatError: it cannot be read, or is of a newer format.
        """
        found = await self.read_bytes()
        return found.over(decode_policy(found.value)) if found is not None else None

    async def read_bytes(self) -> Versioned[bytes] | None:
        """Read the policy's bytes after a sync; None: there is none.

        Raises:
            MetadataRolledBackError: the store has shown an older state than before; what it says is not believed.
        """
        if (error := self._store.rolled_back) is not None:
            raise once_more(error)
        return await get_or_none(self._store, self.path, fresh=True)

    async def change(
        self,
        alter: Callable[[Policy], Policy],
        note: PolicyChange,
        *,
        over_damaged: bool = False,
        always: bool = False,
    ) -> Policy:
        """Change the policy by compare-and-set, and note who did it.

        Args:
            alter: gives the new policy for the present one; it may be called several times, and raises to give up.
            note: who changes what. Where ``alter`` returns the policy that it was given, nothing is written.
            always: the note is written although the policy stays as it is.
            over_damaged: a policy that cannot be read counts as an empty one, and is lost.

        Returns:
            The policy as it is now.

        Raises:
            MetadataFormatError: the present policy cannot be read.
            ConfigError: the new one is not allowed, or too large.
            MetadataUnavailableError: it is not known whether it was written.
        """
        while True:
            found = await self.read_bytes()
            damaged = False
            try:
                before = decode_policy(found.value) if found is not None else Policy()
            except MetadataFormatError:
                if not over_damaged:
                    raise
                before, damaged = Policy(), True
            after = alter(before)
            if after == before and not damaged and not always:
                return before
            after = after.with_change(note)
            try:
                if found is None:
                    await settled_create(self._store, self.path, encode_policy(after), parents=True)
                else:
                    await settled_set(
                        self._store, self.path, encode_policy(after), found.version, created_txn=found.created_txn
                    )
            except (MetadataConflictError, KeyExistsError, NoSuchKeyError):
                continue
            return after

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back when the policy changes."""
        return self._store.watch(self.path, callback)

    async def read_usage(self) -> Usage | None:
        """What was counted last; None: nothing was. Raises: MetadataFormatError."""
        found = await get_or_none(self._store, self.usage_path)
        return Usage.decode(found.value) if found is not None else None

    async def write_usage(self, usage: Usage) -> None:
        """Replace what was counted last."""
        await put(self._store, self.usage_path, usage.encode())

    def watch_usage(self, callback: Callable[[], None]) -> Watch:
        """Call back when it was counted anew."""
        return self._store.watch(self.usage_path, callback)
