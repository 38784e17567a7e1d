"""Reading the access policy for people, and changing it with a note of who did it, and when."""

from __future__ import annotations

import getpass
import platform
from collections.abc import Callable

from bookkeeper.access import Mode, Policy, PolicyChange
from bookkeeper.admin.shared.options import moment
from bookkeeper.errors import MetadataFormatError
from bookkeeper.meta import Metadata
from bookkeeper.real import system_seams


async def read_policy(metadata: Metadata) -> Policy:
    """The present policy; an empty one where there is none.

    Raises:
        MetadataFormatError: it cannot be read; the text says how to go on.
    """
    try:
        found = await metadata.access.read()
    except MetadataFormatError as error:
        raise _helpful(error) from error
    return found.value if found is not None else Policy()


async def change_policy(
    metadata: Metadata, what: str, alter: Callable[[Policy], Policy], *, discard: bool = False
) -> Policy:
    """Change the policy. ``what`` was done stands in its history, beside this user and this machine.

    Raises: as :meth:`bookkeeper.meta.records.access_policy.AccessPolicies.change`.
    """
    by = f"{getpass.getuser()} on {platform.node()}"
    note = PolicyChange.of(system_seams().clock.wall_ms(), by, what)
    try:
        return await metadata.access.change(alter, note, over_damaged=discard)
    except MetadataFormatError as error:
        raise _helpful(error) from error


def _helpful(error: MetadataFormatError) -> MetadataFormatError:
    return MetadataFormatError(
        f"{error}; every server keeps the last policy that it could read. Use a newer `bk`, or give up the policy with "
        "`bk access off --discard`"
    )


def mode_in_words(policy: Policy) -> str:
    """One line about the mode."""
    said = {
        Mode.OFF: "off: nobody is asked, every admitted client may do everything",
        Mode.OBSERVE: "observe: what would be denied is told and counted, and done",
        Mode.ENFORCE: "enforce: what is not granted is denied",
    }[policy.mode]
    if not policy.changes:
        return said
    last = policy.changes[-1]
    return f"{said} (last change {moment(last.at_ms)} by {last.by}: {last.what})"


async def note_change(metadata: Metadata, what: str) -> None:
    """Note something in the policy's history that changes another record. Raises: as :func:`change_policy`."""
    by = f"{getpass.getuser()} on {platform.node()}"
    note = PolicyChange.of(system_seams().clock.wall_ms(), by, what)
    try:
        await metadata.access.change(lambda policy: policy, note, always=True)
    except MetadataFormatError as error:
        raise _helpful(error) from error
