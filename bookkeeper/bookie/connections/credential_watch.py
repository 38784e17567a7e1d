"""Ends connections whose credentials have become invalid (X15). It decides; the connections close themselves.

A credential becomes invalid when its certificate or token expires or is revoked, or when its authority, its signing key
or its user is removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from bookkeeper.auth.client_trust import ClientTrust
from bookkeeper.auth.provider import ServerProvider, WatchfulProvider


@dataclass(slots=True)
class Credential:
    """The credential of one connection's client."""

    ends_at: float = math.inf
    """In seconds since 1970."""
    certificate: bytes | None = None
    """The certificate (DER) that ``trust`` has admitted."""
    trust: ClientTrust | None = None
    shown: object = None
    """The provider's own handle of it; None if the provider did not authenticate the client or does not watch."""


class CredentialHolder(Protocol):
    """An admitted connection."""

    credential: Credential

    def credential_ended(self, reason: str) -> None:
        """Accept nothing more, send the answers that are written, and close."""


class CredentialWatch:
    """The credentials of one bookie's connections."""

    def __init__(self, provider: ServerProvider | None) -> None:
        self.trust = ClientTrust()
        """The authorities that admit new connections."""
        self._provider = provider if isinstance(provider, WatchfulProvider) else None
        self._holders: dict[CredentialHolder, None] = {}

    def add(self, holder: CredentialHolder) -> None:
        """Watch an admitted connection."""
        self._holders[holder] = None

    def remove(self, holder: CredentialHolder) -> None:
        """Stop watching a connection that has ended. Idempotent."""
        self._holders.pop(holder, None)

    def end_refused(self, now_s: float) -> int:
        """End every connection whose credential is invalid at ``now_s``, in seconds since 1970. Returns how many."""
        ended = 0
        verdicts: dict[tuple[bytes, int], str | None] = {}
        for holder in list(self._holders):
            reason = self._refusal_of(holder.credential, now_s, verdicts)
            if reason is not None:
                del self._holders[holder]
                ended += 1
                holder.credential_ended(reason)
        return ended

    def _refusal_of(
        self, credential: Credential, now_s: float, verdicts: dict[tuple[bytes, int], str | None]
    ) -> str | None:
        """Why a credential is invalid; None if it is valid. ``verdicts`` caches one pass's results by certificate,
        which many connections may share."""
        if credential.ends_at <= now_s:
            return "its certificate or token has ended"
        if credential.certificate is not None and credential.trust is not None:
            shown = (credential.certificate, id(credential.trust))
            if shown not in verdicts:
                verdicts[shown] = self.trust.why_refused(credential.certificate, credential.trust, now_s)
            if (reason := verdicts[shown]) is not None:
                return reason
        if credential.shown is not None and self._provider is not None:
            return self._provider.ended(credential.shown)
        return None
