"""Which members of a journal set must work, and which may fail (pure).

    shared      written first, so nothing is in another member before it is here; at most one; required
    required    its failure is the set's failure
    redundant   a copy: it is switched off when it fails, and joins again at the next segment

The first member in this order is the *leading* one: it decides which edits exist. Every acknowledged edit is in it and
in every other required member. Redundant members can only be behind, and are brought up to it.

A set of redundant members only is refused. After a crash it could not tell whether the member that lacks edits was
switched off, or the member that has them made them up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from journal_manager.errors import JournalConfigError, NotEnoughJournalsError


@dataclass(frozen=True, slots=True)
class Member:
    """One journal of a set."""

    uri: str
    required: bool = False
    shared: bool = False
    """Several processes may take it over from each other; the other members belong to one machine."""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """As for ``open_writer``."""
    wrap: Callable[[Any], Any] | None = field(default=None, compare=False)
    """Goes around the member's writer whenever it is opened, for instance ``JournalStats(…).measured``."""


class MemberState(Enum):
    """Whether a member is written."""

    ACTIVE = "active"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """What is known about one member."""

    uri: str
    state: MemberState
    problem: str | None
    """Why it is off."""


class SetRules:
    """Remembers which members are off, and says when too few are left."""

    def __init__(self, members: Sequence[Member], minimum: int = 1) -> None:
        """``minimum`` is how many redundant members must work, if there are any.

        Raises:
            JournalConfigError: the set cannot work.
        """
        uris = [member.uri for member in members]
        if len(set(uris)) != len(uris):
            raise JournalConfigError("a journal set names a member twice")
        if sum(member.shared for member in members) > 1:
            raise JournalConfigError("a journal set has at most one shared member")
        if not any(member.shared or member.required for member in members):
            raise JournalConfigError(
                "a journal set needs a shared or a required member, which decides which edits exist"
            )
        self.members = tuple(sorted(members, key=_rank))
        """The leading member comes first, then the other required ones."""
        redundant = sum(not self.is_required(member) for member in members)
        if not minimum >= 0 or (redundant and minimum > redundant):
            raise JournalConfigError(f"{minimum} of {redundant} redundant members cannot be the minimum")
        self._minimum = minimum if redundant else 0
        self._off: dict[str, Exception] = {}

    @property
    def leading(self) -> Member:
        return self.members[0]

    @staticmethod
    def is_required(member: Member) -> bool:
        return member.required or member.shared

    def is_off(self, member: Member) -> bool:
        return member.uri in self._off

    def switch_off(self, member: Member, why: Exception) -> None:
        """A redundant member failed."""
        assert not self.is_required(member), member.uri
        self._off[member.uri] = why

    def join(self, member: Member) -> None:
        """A member works again."""
        self._off.pop(member.uri, None)

    def ensure_enough(self) -> None:
        """Check that enough redundant members work.

        Raises:
            NotEnoughJournalsError: it names those that are off.
        """
        working = sum(not self.is_required(member) and not self.is_off(member) for member in self.members)
        if working < self._minimum:
            reasons = "; ".join(f"{uri}: {error}" for uri, error in self._off.items())
            raise NotEnoughJournalsError(
                f"{working} redundant members of the journal set work, and {self._minimum} must; off are {reasons}"
            )

    def status(self) -> tuple[MemberStatus, ...]:
        """All members, the leading one first."""
        return tuple(
            MemberStatus(
                member.uri,
                MemberState.OFF if self.is_off(member) else MemberState.ACTIVE,
                str(self._off[member.uri]) if self.is_off(member) else None,
            )
            for member in self.members
        )


def _rank(member: Member) -> int:
    return 0 if member.shared else 1 if member.required else 2
