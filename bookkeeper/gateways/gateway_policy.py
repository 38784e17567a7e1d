"""A gateway's copy of the access policy, and what callers may do by it."""

from __future__ import annotations

import asyncio
import contextlib

from bookkeeper.access import Mode, Policy, Principal, QuotaRefusal
from bookkeeper.gateways.permissions import CallerRights, Denial
from bookkeeper.meta import Metadata
from bookkeeper.meta.policy_follower import AccessReporter, PolicyFollower
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams


class GatewayPolicy:
    """Follows the policy of a cluster while the gateway serves."""

    def __init__(self, metadata: Metadata | None, seams: Seams, metrics: Metrics, *, kind: str, name: str) -> None:
        """``metadata`` is None where there is no cluster, and so no policy. ``kind`` and ``name`` tell others which
        gateway this is."""
        self._clock = seams.clock
        self._follower: PolicyFollower | None = None
        self._following: asyncio.Task[None] | None = None
        if metadata is not None:
            reporter = AccessReporter(metadata.access_servers, kind, name)
            self._follower = PolicyFollower(metadata.access, seams.clock, metrics, reporter=reporter)
        self.permissions = CallerRights(self._policy, self._noted, self._take)

    async def start(self) -> None:
        """Read the policy, and follow it from now on.

        Raises:
            MetadataError: the store does not answer.
        """
        if self._follower is not None:
            await self._follower.read()
            self._following = asyncio.get_running_loop().create_task(self._follower.run(), name="access policy")

    async def close(self) -> None:
        """Follow it no more. Idempotent."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([following])

    def _policy(self) -> Policy:
        return _NO_POLICY if self._follower is None else self._follower.policy

    def _take(self, principal: Principal, entries: int, size: int) -> QuotaRefusal | None:
        """The rates of a principal hold here, because bookies see the gateway alone. What may be kept, and what tenants
        may have, is asked by bookies."""
        if self._follower is None:
            return None
        refusal = self._follower.quotas.charge(principal, None, entries, size, self._clock.monotonic())
        if refusal is None or refusal.after_s is None or self._policy().mode is not Mode.ENFORCE:
            return None
        return refusal

    def _noted(self, principal: Principal, denial: Denial) -> None:
        if self._follower is not None:
            self._follower.observations.note(principal, str(denial.right), denial.on)


_NO_POLICY = Policy()
