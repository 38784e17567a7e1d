"""Who got what was not his, and whether anybody lost what was."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Loot:
    """What was got, by attack; and what became of the tenants' own."""

    read: int = 0
    """Entries of the other tenant that were read."""
    ended: int = 0
    """Bookies on which somebody else ended a writer."""
    forged: int = 0
    """Copies of forged entries that bookies took."""
    squatted: int = 0
    """Copies of entries in ledgers that somebody else had made and not yet written."""
    by_revoked: int = 0
    """Entries that were read with a certificate after it was revoked."""
    by_stolen_token: int = 0
    """Records that were read or written with a stolen token after it was taken back."""
    over_quota: int = 0
    """Entries beyond what a quota allows."""
    lost: list[str] = field(default_factory=list)
    """What a tenant wrote and did not get back, or could not do although it was his."""
    own: int = 0
    """Entries that tenants wrote and read back."""

    @property
    def taken(self) -> dict[str, int]:
        """What was got, by attack."""
        return {
            "entries read": self.read,
            "fences": self.ended,
            "entries forged": self.forged,
            "ledgers squatted": self.squatted,
            "reads with a revoked certificate": self.by_revoked,
            "uses of a stolen token": self.by_stolen_token,
            "entries over quota": self.over_quota,
        }

    @property
    def good(self) -> bool:
        return not any(self.taken.values()) and not self.lost and self.own > 0

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong, as lines for people."""
        return [*(f"{what}: {count}" for what, count in self.taken.items() if count), *self.lost]
