"""Ends connections whose clients would be refused today (X15). It decides; the connections end themselves.

A client's credential ends with its certificate or its token; when that is revoked; when its authority, the key that
signed it, or the user of a password is removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from bookkeeper.auth.client_trust import ClientTrust
from bookkeeper.auth.provider import ServerProvider, WatchfulProvider


@dataclass(slots=True)
class Credential:
    """What the client of one connection has shown."""

    ends_at: float = math.inf
    """In seconds since 1970."""
    certificate: bytes | None = None
    """The certificate (DER) that ``trust`` has admitted."""
    trust: ClientTrust | None = None
    shown: object = None
    """What the provider is asked about; None if it has asked nothing, or does not watch."""


class Holder(Protocol):
    """An admitted connection."""

    credential: Credential

    def credential_ended(self, reason: str) -> None:
        """End: take nothing more, and send what was answered."""


class CredentialWatch:
    """The credentials of one bookie's connections."""

    def __init__(self, provider: ServerProvider | None) -> None:
        self.trust = ClientTrust()
        """By what new connections are admitted."""
        self._provider = provider if isinstance(provider, WatchfulProvider) else None
        self._holders: dict[Holder, None] = {}

    def admitted(self, holder: Holder) -> None:
        """A client was let in."""
        self._holders[holder] = None

    def gone(self, holder: Holder) -> None:
        """A connection has ended. Idempotent."""
        self._holders.pop(holder, None)

    def look(self, now_s: float) -> int:
        """End every connection whose client would be refused now, in seconds since 1970. Returns how many."""
        ended = 0
        verdicts: dict[tuple[bytes, int], str | None] = {}
        for holder in list(self._holders):
            reason = self._why_ended(holder.credential, now_s, verdicts)
            if reason is not None:
                del self._holders[holder]
                ended += 1
                holder.credential_ended(reason)
        return ended

    def _why_ended(
        self, credential: Credential, now_s: float, verdicts: dict[tuple[bytes, int], str | None]
    ) -> str | None:
        """Why a credential is no longer good; None if it is. Many connections show one certificate, which is judged
        once in a look (``verdicts``)."""
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
