"""Which rights each operation needs, on the path and on every other one that a request names (X12). Data, and who reads
it. Pure.

Every operation, and every parameter of one that names a path, has its decision here: a test goes over all of them, and
an operation without one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from bookkeeper.access import Right
from bookkeeper.gateways.permissions import Needs, all_of, one_of

READ: Final = one_of(Right.READ)
CREATE: Final = one_of(Right.CREATE)
DELETE: Final = one_of(Right.DELETE)
REPLACE: Final = all_of(Right.CREATE, Right.DELETE)
"""A file may be there already, and is gone then."""
MOVE: Final = all_of(Right.READ, Right.DELETE)
"""The name goes, and what is under it can be read under another one."""
CHANGE: Final = one_of(Right.CREATE, Right.APPEND)
"""Attributes of a file, by whoever may write files there."""
LOOK: Final[Needs] = ()
"""Tells nothing but what everybody may know who has any right at or below the path: clients ask for it on their way to
where they may do something."""

OPERATION_RIGHTS: Final[Mapping[str, Needs]] = {
    "CREATE": CREATE,
    "APPEND": one_of(Right.APPEND),
    "OPEN": READ,
    "GETFILESTATUS": LOOK,
    "GETFILELINKSTATUS": LOOK,
    "LISTSTATUS": READ,
    "LISTSTATUS_BATCH": READ,
    "MKDIRS": CREATE,
    "RENAME": MOVE,
    "DELETE": DELETE,
    "DELETENUMBERED": DELETE,
    "GETHOMEDIRECTORY": LOOK,
    "GETSERVERDEFAULTS": LOOK,
    "GETCONTENTSUMMARY": READ,
    "GETFILEBLOCKLOCATIONS": READ,
    "GET_BLOCK_LOCATIONS": READ,
    "GETFILECHECKSUM": READ,
    "SETPERMISSION": CHANGE,
    "SETOWNER": one_of(Right.ADMINISTER),
    "SETREPLICATION": CHANGE,
    "SETTIMES": CHANGE,
    "CHECKACCESS": LOOK,
    "GETTRASHROOT": LOOK,
    "GETSTATUS": READ,
    "GETDELEGATIONTOKEN": LOOK,
}
"""What is needed on the request's path."""

PATH_PARAMETERS: Final[Mapping[str, Mapping[str, Needs]]] = {"RENAME": {"destination": CREATE}}
"""Parameters that name another path, and what is needed on that."""

VALUE_PARAMETERS: Final = frozenset(
    ("op", "user.name", "delegation", "namenoderpcaddress", "noredirect", "offset", "length", "buffersize", "blocksize",
     "permission", "unmaskedpermission", "replication", "overwrite", "createflag", "createparent", "recursive",
     "renameoptions", "owner", "group", "modificationtime", "accesstime", "fsaction", "limits", "listing", "quiet",
     "startafter")
)  # fmt: skip
"""Parameters that name no path outside of the request's. ``limits`` are names below it, ``startafter`` one in it."""


def needs_of(operation: str, *, replaces: bool) -> Needs | None:
    """What an operation needs on its path; None: there is no decision. ``replaces``: a file that is there goes."""
    if operation == "CREATE" and replaces:
        return REPLACE
    return OPERATION_RIGHTS.get(operation)


def needs_elsewhere(operation: str, *, replaces: bool) -> Iterator[tuple[str, Needs]]:
    """The parameters of an operation that name other paths, each with what is needed on that."""
    for parameter, needs in PATH_PARAMETERS.get(operation, {}).items():
        yield parameter, REPLACE if replaces and needs is CREATE else needs
