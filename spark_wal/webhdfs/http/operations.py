"""The WebHDFS operations: a request in, a reply out. Knows no HTTP library.

Those by which the bytes of files come and go are in :mod:`~spark_wal.webhdfs.http.two_steps`.

Each step that uses the namespace first checks that this gateway owns it. A client that knows several gateways takes a
redirect for the owner's answer, and does not ask the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bookkeeper.gateways.permissions import Denial
from spark_wal.webhdfs.access.authentication import denial_of, denied
from spark_wal.webhdfs.access.operation_rights import READ, needs_elsewhere, needs_of
from spark_wal.webhdfs.errors import (
    IllegalArgumentError,
    NoSuchFileError,
    PlainIOError,
    UnsupportedError,
    WebApplicationError,
    WebHdfsError,
)
from spark_wal.webhdfs.files.numbered import parse_limits
from spark_wal.webhdfs.files.paths import normalize
from spark_wal.webhdfs.files.records import RenameMode, SetAttributes
from spark_wal.webhdfs.http import rates, replies, two_steps
from spark_wal.webhdfs.http.blocks import FileBlock, blocks_of
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.request import DONE, Operation, Reply, Request, is_step_one, refusal_reply
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.file_system import FileStatus
from spark_wal.webhdfs.ownership.gateway import Gateway

BATCH: Final = 1000
"""Entries in one page of LISTSTATUS_BATCH (HDFS's dfs.ls.limit)."""

REPLICATION_MAX: Final = 512
ENDLESS: Final = 1 << 50
"""The bytes that are reported as free if there is no quota."""

PATH_MAX: Final = 8000
DEPTH_MAX: Final = 1000
"""Characters and names of a new path: HDFS's limits. One record makes all directories of a path, and a snapshot has the
whole path of each."""


async def perform(gateway: Gateway, request: Request) -> Reply:
    """Perform a request.

    Raises:
        NotOwnerError: the outcome is unknown, so the connection should end without an answer.
    """
    try:
        operation = _operation(request)
        _authorize(request)
        _check_length(request)
        if _changes(request):
            await gateway.owner()  # one that stands by says so first: the owner has the same caller's rates
            await _in_time(request)
        return await operation(gateway, request)
    except WebHdfsError as error:
        return refusal_reply(error)


def _changes(request: Request) -> bool:
    """Whether it changes something in this step."""
    return request.method not in ("GET", "HEAD") and not (
        request.query.op in two_steps.UPLOADS and is_step_one(request.query)
    )


async def _in_time(request: Request) -> None:
    """Wait until the caller's rates admit a change. Raises RateExceededError."""
    try:
        await rates.admit(request.permissions, request.principal)
    except WebHdfsError:
        await two_steps.drain(request)
        raise


def _authorize(request: Request) -> None:
    """Check that the client may do this with every path that the request names. Raises AccessDeniedError."""
    name = operation_name(request)
    for path, denial in denials(request):
        raise denied(denial, path, name)


def denials(request: Request) -> Iterator[tuple[str, Denial]]:
    """The paths that a request names and its client may not use so, each with the reason."""
    name = operation_name(request)
    replaces = _replaces(request.query, name)
    needs = needs_of(name, replaces=replaces)
    assert needs is not None, f"{name} has no decision about its rights"
    named = [(request.path, needs)]
    for parameter, elsewhere in needs_elsewhere(name, replaces=replaces):
        named.append((normalize(request.query.required(parameter, name)), elsewhere))
    for path, needed in named:
        denial = denial_of(request.permissions, request.principal, path, needed)
        if denial is not None:
            yield path, denial


def _replaces(query: Query, name: str) -> bool:
    """Whether an operation lets a file go that has the new one's name."""
    if name == "CREATE":
        return query.boolean("overwrite", False) or "OVERWRITE" in query.create_flags()
    return name == "RENAME" and query.rename_mode() is RenameMode.OVERWRITE


def _check_length(request: Request) -> None:
    """Check the length of a new path. Raises PlainIOError. The tree itself accepts every path of its journal."""
    name = request.query.op
    if name not in MAKING:
        return
    path = normalize(request.query.destination(name)) if name == "RENAME" else request.path
    if len(path) > PATH_MAX or path.count("/") > DEPTH_MAX:
        raise PlainIOError(f"{name.lower()}: Pathname too long.  Limit {PATH_MAX} characters, {DEPTH_MAX} levels.")


MAKING: Final = frozenset(("MKDIRS", "CREATE", "RENAME"))
"""Operations that make a path."""


OTHER: Final = "OTHER"
"""The name for metrics of what is no operation."""


def operation_name(request: Request) -> str:
    """The operation's name for metrics: one of a fixed set."""
    name = request.query.op
    method = "GET" if request.method == "HEAD" else request.method
    return name if (method, name) in OPERATIONS else OTHER


def _operation(request: Request) -> Operation:
    if request.method not in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        raise WebApplicationError
    name = request.query.op
    if not name:
        raise UnsupportedError("op=NULL is not supported")
    method = "GET" if request.method == "HEAD" else request.method
    request.query.user()
    operation = OPERATIONS.get((method, name))
    if operation is not None:
        return operation
    if (method, name) in UNSUPPORTED:
        raise UnsupportedError(f"{name} is not supported")
    raise IllegalArgumentError(
        f'Invalid value for webhdfs parameter "op": {name} is not a valid {request.method} operation.'
    )


# -- reading ---------------------------------------------------------------------------------------------


async def _file_status(gateway: Gateway, request: Request) -> Reply:
    return Reply(200, replies.file_status(await file_system.status(await gateway.owner(), request.path)))


async def _list_status(gateway: Gateway, request: Request) -> Reply:
    return Reply(200, replies.file_statuses(await file_system.listing(await gateway.owner(), request.path)))


async def _list_status_batch(gateway: Gateway, request: Request) -> Reply:
    after = request.query.text("startafter")
    statuses = await file_system.listing(await gateway.owner(), request.path)
    if after is not None:
        statuses = [s for s in statuses if s.name > after]
    return Reply(200, replies.directory_listing(statuses[:BATCH], max(len(statuses) - BATCH, 0)))


async def _blocks(request: Request, gateway: Gateway) -> tuple[FileStatus, list[FileBlock]]:
    offset = request.query.long("offset", 0, minimum=0) or 0
    count = request.query.long("length", None, minimum=0)
    found = await file_system.status(await gateway.owner(), request.path)
    if found.is_directory:
        raise NoSuchFileError(f"Path is not a file: {request.path}")
    return found, list(blocks_of(found.length, found.block_size, offset, count))


async def _block_locations(gateway: Gateway, request: Request) -> Reply:
    """Answer the question of Hadoop's clients from 3.4 on before they split a file among tasks."""
    _, blocks = await _blocks(request, gateway)
    return Reply(200, replies.block_locations(blocks))


async def _located_blocks(gateway: Gateway, request: Request) -> Reply:
    """Answer the same for older clients, and for clients that have found the newer operation missing."""
    found, blocks = await _blocks(request, gateway)
    return Reply(200, replies.located_blocks(found, blocks))


async def _content_summary(gateway: Gateway, request: Request) -> Reply:
    return Reply(200, replies.content_summary(await file_system.summary(await gateway.owner(), request.path)))


async def _check_access(gateway: Gateway, request: Request) -> Reply:
    """Check only that the path exists: modes and owners restrict nobody, and tokens have paths."""
    request.query.action("CHECKACCESS")
    try:
        await file_system.status(await gateway.owner(), request.path)
    except NoSuchFileError:
        raise NoSuchFileError(f"Path not found: {request.path}") from None
    return DONE


async def _home_directory(gateway: Gateway, request: Request) -> Reply:
    return Reply(200, replies.path(f"/user/{request.user}"))


async def _trash_root(gateway: Gateway, request: Request) -> Reply:
    return Reply(200, replies.path(f"/user/{request.user}/.Trash"))


async def _server_defaults(gateway: Gateway, request: Request) -> Reply:
    await gateway.owner()
    return Reply(200, replies.dumps(replies.SERVER_DEFAULTS))


async def _fs_status(gateway: Gateway, request: Request) -> Reply:
    """Answer the root's quota, or a nearly endless size, because the gateway does not know the bookies' free space. A
    principal with roots of its own learns nothing about the usage of others."""
    limited = denial_of(request.permissions, request.principal, "/", READ) is not None
    summary = await file_system.summary(await gateway.owner(), request.path if limited else "/")
    capacity = summary.length + ENDLESS if summary.quota is None else summary.quota
    return Reply(200, replies.fs_status(summary.length, capacity))


async def _delegation_token(gateway: Gateway, request: Request) -> Reply:
    """There are no delegation tokens with simple authentication."""
    await gateway.owner()
    return Reply(200, b'{"Token":null}')


# -- changing --------------------------------------------------------------------------------------------


async def _make_directories(gateway: Gateway, request: Request) -> Reply:
    permission = request.query.permission(0o755)
    user = request.user
    made = await file_system.make_directories(await gateway.owner(), request.path, permission, user)
    return Reply(200, replies.boolean(made))


async def _rename(gateway: Gateway, request: Request) -> Reply:
    target = normalize(request.query.destination("RENAME"))
    mode = request.query.rename_mode()
    done = await file_system.rename(await gateway.owner(), request.path, target, mode)
    return Reply(200, replies.boolean(done)) if mode is RenameMode.BARE else DONE


async def _delete(gateway: Gateway, request: Request) -> Reply:
    recursive = request.query.boolean("recursive", False)
    done = await file_system.delete(await gateway.owner(), request.path, recursive=recursive)
    return Reply(200, replies.boolean(done))


async def _delete_numbered(gateway: Gateway, request: Request) -> Reply:
    """Not an operation of HDFS: remove files above given numbers by one edit."""
    query = request.query
    limits = parse_limits(query.required("limits", "DELETENUMBERED"))
    digest = query.required("listing", "DELETENUMBERED")
    quiet_ms = query.long("quiet", 0, minimum=0) or 0
    done = await file_system.remove_numbered(await gateway.owner(), request.path, limits, digest, quiet_ms)
    return Reply(200, replies.boolean(done))


async def _set_permission(gateway: Gateway, request: Request) -> Reply:
    record = SetAttributes(request.path, permission=request.query.permission(0o755))
    await file_system.set_attributes(await gateway.owner(), record)
    return DONE


async def _set_owner(gateway: Gateway, request: Request) -> Reply:
    user, group = request.query.text("owner"), request.query.text("group")
    if user is None and group is None:
        raise IllegalArgumentError("Both owner and group are empty.")
    await file_system.set_attributes(await gateway.owner(), SetAttributes(request.path, owner=user, group=group))
    return DONE


async def _set_replication(gateway: Gateway, request: Request) -> Reply:
    """Keep and show the number. It has no effect, because the ledgers decide how many copies there are."""
    replication = request.query.short("replication", 1, minimum=1)
    if replication > REPLICATION_MAX:
        raise PlainIOError(
            f"Requested replication factor of {replication} exceeds maximum of {REPLICATION_MAX} for {request.path}"
        )
    owner = await gateway.owner()
    try:
        found = await file_system.status(owner, request.path)
    except NoSuchFileError:
        return Reply(200, replies.boolean(False))
    if found.is_directory:
        return Reply(200, replies.boolean(False))
    await file_system.set_attributes(owner, SetAttributes(request.path, replication=replication))
    return Reply(200, replies.boolean(True))


async def _set_times(gateway: Gateway, request: Request) -> Reply:
    modified = request.query.long("modificationtime", -1, minimum=-1)
    accessed = request.query.long("accesstime", -1, minimum=-1)
    record = SetAttributes(
        request.path,
        modified_ms=None if modified == -1 else modified,
        accessed_ms=None if accessed == -1 else accessed,
    )
    try:
        await file_system.set_attributes(await gateway.owner(), record)
    except NoSuchFileError:
        raise NoSuchFileError(f"File/Directory {request.path} does not exist.") from None
    return DONE


OPERATIONS: Final[dict[tuple[str, str], Operation]] = {
    ("PUT", "CREATE"): two_steps.create,
    ("POST", "APPEND"): two_steps.append,
    ("GET", "OPEN"): two_steps.open_file,
    ("GET", "GETFILESTATUS"): _file_status,
    ("GET", "GETFILELINKSTATUS"): _file_status,
    ("GET", "LISTSTATUS"): _list_status,
    ("GET", "LISTSTATUS_BATCH"): _list_status_batch,
    ("PUT", "MKDIRS"): _make_directories,
    ("PUT", "RENAME"): _rename,
    ("DELETE", "DELETE"): _delete,
    ("DELETE", "DELETENUMBERED"): _delete_numbered,
    ("GET", "GETHOMEDIRECTORY"): _home_directory,
    ("GET", "GETSERVERDEFAULTS"): _server_defaults,
    ("GET", "GETCONTENTSUMMARY"): _content_summary,
    ("GET", "GETFILEBLOCKLOCATIONS"): _block_locations,
    ("GET", "GET_BLOCK_LOCATIONS"): _located_blocks,
    ("GET", "GETFILECHECKSUM"): two_steps.file_checksum,
    ("PUT", "SETPERMISSION"): _set_permission,
    ("PUT", "SETOWNER"): _set_owner,
    ("PUT", "SETREPLICATION"): _set_replication,
    ("PUT", "SETTIMES"): _set_times,
    ("GET", "CHECKACCESS"): _check_access,
    ("GET", "GETTRASHROOT"): _trash_root,
    ("GET", "GETSTATUS"): _fs_status,
    ("GET", "GETDELEGATIONTOKEN"): _delegation_token,
}
"""The operations that are performed."""

UNSUPPORTED: Final[frozenset[tuple[str, str]]] = frozenset(
    [("GET", name) for name in (
        "GETQUOTAUSAGE", "GETACLSTATUS", "GETXATTRS", "LISTXATTRS", "GETTRASHROOTS", "GETDELEGATIONTOKENS",
        "GETSTORAGEPOLICY", "GETALLSTORAGEPOLICY", "GETECPOLICY",
        "GETECPOLICIES", "GETECCODECS", "GETSNAPSHOTDIFF", "GETSNAPSHOTDIFFLISTING", "GETSNAPSHOTTABLEDIRECTORYLIST",
        "GETSNAPSHOTLIST", "GETLINKTARGET",
    )]
    + [("PUT", name) for name in (
        "CREATESYMLINK", "SETQUOTA", "SETQUOTABYSTORAGETYPE", "MODIFYACLENTRIES", "REMOVEACLENTRIES",
        "REMOVEDEFAULTACL", "REMOVEACL", "SETACL", "SETXATTR", "REMOVEXATTR", "SETSTORAGEPOLICY",
        "SATISFYSTORAGEPOLICY", "ENABLEECPOLICY", "DISABLEECPOLICY", "SETECPOLICY", "CREATESNAPSHOT",
        "RENAMESNAPSHOT", "ALLOWSNAPSHOT", "DISALLOWSNAPSHOT", "RENEWDELEGATIONTOKEN", "CANCELDELEGATIONTOKEN",
    )]
    + [("POST", name) for name in ("CONCAT", "TRUNCATE", "UNSETSTORAGEPOLICY", "UNSETECPOLICY")]
    + [("DELETE", "DELETESNAPSHOT")]
)  # fmt: skip
"""The operations of HDFS that are known and not supported."""
