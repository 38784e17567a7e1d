"""The WebHDFS operations: a request in, a reply out. Knows no HTTP library.

CREATE, APPEND, OPEN and GETFILECHECKSUM take two steps: the first is answered by a redirect *to this very
gateway* (Hadoop's client insists on one), and the second carries ``namenoderpcaddress``, as HDFS's does.

Each step that uses the namespace first checks that this gateway owns it. A client that knows several gateways takes a
redirect for the owner's answer, and does not ask the next one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import quote

from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights, Denial
from spark_wal.webhdfs.access.authentication import denial_of, denied
from spark_wal.webhdfs.access.operation_rights import READ, needs_elsewhere, needs_of
from spark_wal.webhdfs.contents.uploads import Upload
from spark_wal.webhdfs.errors import (
    AccessDeniedError,
    IllegalArgumentError,
    NoSuchFileError,
    PlainIOError,
    RateExceededError,
    UnsupportedError,
    WebApplicationError,
    WebHdfsError,
)
from spark_wal.webhdfs.files.numbered import parse_limits
from spark_wal.webhdfs.files.paths import PREFIX, encode_path, normalize
from spark_wal.webhdfs.files.records import RenameMode, SetAttributes
from spark_wal.webhdfs.http import rates, replies
from spark_wal.webhdfs.http.blocks import FileBlock, blocks_of
from spark_wal.webhdfs.http.checksum import CompositeChecksum
from spark_wal.webhdfs.http.parameters import CREATE_FLAGS, Query
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.file_system import CreateOptions, FileContents, FileStatus
from spark_wal.webhdfs.ownership.gateway import Gateway
from spark_wal.webhdfs.ownership.growing_file import GrowingFile
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner

BATCH: Final = 1000
"""Entries in one page of LISTSTATUS_BATCH (HDFS's dfs.ls.limit)."""

REPLICATION_MAX: Final = 512
ENDLESS: Final = 1 << 50
"""The bytes that are reported as free if there is no quota."""

DRAIN_MAX: Final = 256 << 20
"""Bytes that are received of a refused file, so that its sender reads the reason."""

LOOK_EVERY: Final = 4 << 20
"""Bytes of an upload between two checks of the quotas."""

PATH_MAX: Final = 8000
DEPTH_MAX: Final = 1000
"""Characters and names of a new path: HDFS's limits. One record makes all directories of a path, and a snapshot has the
whole path of each."""

STEP_TWO: Final = "namenoderpcaddress"


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    query: Query
    authority: str
    """Host and port as the client has given them. Redirects lead there."""
    body: AsyncIterator[bytes]
    scheme: str = "http"
    take_any_time: Callable[[], None] = lambda: None
    """Tells the connection that the body may pause for as long as it wants."""
    principal: Caller | None = None
    """The authenticated client. None: the gateway does not authenticate, and ``user.name`` is believed."""
    permissions: CallerRights = field(default_factory=CallerRights)

    @property
    def user(self) -> str:
        return self.query.user() if self.principal is None else self.principal.name


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request."""

    status: int = 200
    body: bytes = b""
    content: FileContents | None = None
    """Bytes to stream instead of ``body``."""
    location: str | None = None
    retry_after_s: int | None = None
    """In how many seconds to ask again."""
    denial: str = ""
    """Why somebody who is known may not do this; empty for all other answers."""

    @property
    def is_json(self) -> bool:
        return bool(self.body)


Operation = Callable[[Gateway, Request], Awaitable[Reply]]
_DONE: Final = Reply()
"""The answer of an operation without a result."""


def refusal_reply(error: WebHdfsError) -> Reply:
    denial = str(error) if isinstance(error, AccessDeniedError) else ""
    after_s = error.after_s if isinstance(error, RateExceededError) else None
    return Reply(error.status, replies.remote_exception(error), retry_after_s=after_s, denial=denial)


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
    return request.method not in ("GET", "HEAD") and not (request.query.op in UPLOADS and _is_step_one(request))


async def _in_time(request: Request) -> None:
    """Wait until the caller's rates admit a change. Raises RateExceededError."""
    try:
        await rates.admit(request.permissions, request.principal)
    except WebHdfsError:
        await _drain(request)
        raise


def _paced(request: Request) -> AsyncIterator[bytes]:
    """The bytes of an upload, no faster than its caller's rates admit them."""
    return rates.paced(request.permissions, request.principal, request.body)


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


UPLOADS: Final = frozenset(("CREATE", "APPEND"))
"""Operations whose second step brings bytes."""

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


# -- two steps -------------------------------------------------------------------------------------------


def _redirect(request: Request, *parameters: tuple[str, object]) -> Reply:
    """Redirect to this gateway, with what the second step needs."""
    query = request.query
    parts = [f"op={query.op}"]
    for name in ("user.name", "delegation"):
        if (value := query.text(name)) is not None:
            parts.append(f"{name}={_quoted(value)}")
    parts.append(f"{STEP_TWO}={quote(request.authority, safe=':')}")
    parts += [f"{name}={_quoted(str(value))}" for name, value in sorted(parameters, key=lambda p: p[0])]
    url = f"{request.scheme}://{request.authority}{PREFIX}{encode_path(request.path)}?{'&'.join(parts)}"
    if query.boolean("noredirect", False):
        return Reply(200, replies.location(url))
    return Reply(307, location=url)


def _quoted(value: str) -> str:
    return value if value.isascii() and value.isalnum() else quote(value)


def _given(query: Query, *names: str) -> list[tuple[str, object]]:
    return [(name, value) for name in names if (value := query.text(name)) is not None]


def _is_step_one(request: Request) -> bool:
    return is_step_one(request.query)


def is_step_one(query: Query) -> bool:
    """Whether this is the first of two steps, which is answered by a redirect."""
    return not query.given(STEP_TWO)


async def _create(gateway: Gateway, request: Request) -> Reply:
    """Create a file. The flags say whether it may exist, and whether it may be new; without flags ``overwrite`` does.
    Other flags are about the place of blocks and have no effect here."""
    query = request.query
    overwrite, given = query.boolean("overwrite", False), query.create_flags()
    flags = given or {"CREATE"}
    options = CreateOptions(
        overwrite=overwrite or "OVERWRITE" in flags,
        create="CREATE" in flags,
        create_parent=query.boolean("createparent", True),
        permission=query.permission(0o644),
        owner=request.user,
        replication=query.short("replication", 1, minimum=1),
        block_size=query.long("blocksize", replies.BLOCK_SIZE, minimum=1) or replies.BLOCK_SIZE,
    )
    owner = await gateway.owner()
    if _is_step_one(request):
        flags_given = ",".join(name for name in CREATE_FLAGS if name in given)
        rest = _given(query, "blocksize", "buffersize", "permission", "replication", "unmaskedpermission")
        parameters = [("createparent", str(options.create_parent).lower()), ("overwrite", str(overwrite).lower())]
        return _redirect(request, ("createflag", flags_given), *parameters, *rest)
    try:
        file_system.check_create(owner, request.path, options)
    except WebHdfsError:
        await _drain(request)
        await owner.settled(owner.namespace.sequence)
        raise
    if owner.growing_paths.holds(request.path):
        await _receive_growing(request, owner, partial(file_system.begin_growing, owner, request.path, options))
        return _created(request)
    file = file_system.begin_create(owner, request.path, options)
    try:
        upload = owner.uploads.begin()
        await _receive(request, owner, upload, lambda size: owner.namespace.check_room(request.path, size))
        await file_system.finish_create(owner, request.path, upload, options, file)
    finally:
        owner.incoming.end(file)
    return _created(request)


def _created(request: Request) -> Reply:
    scheme = "swebhdfs" if request.scheme == "https" else "webhdfs"
    return Reply(201, location=f"{scheme}://{request.authority}{encode_path(request.path)}")


async def _append(gateway: Gateway, request: Request) -> Reply:
    owner = await gateway.owner()
    if _is_step_one(request):
        await file_system.check_append(owner, request.path)
        return _redirect(request, *_given(request.query, "buffersize"))
    try:
        file = file_system.begin_append(owner, request.path)
    except WebHdfsError:
        await _drain(request)
        await owner.settled(owner.namespace.sequence)
        raise
    try:
        if owner.growing_paths.holds(request.path):
            await _receive_growing(request, owner, partial(file_system.grow, owner, file))
            return _DONE
        upload = owner.uploads.begin()
        await _receive(request, owner, upload, lambda size: owner.namespace.check_more(file.path, size))
        await file_system.finish_append(owner, file, upload)
    finally:
        owner.namespace.unfollow(file)
    return _DONE


async def _receive(request: Request, owner: NamespaceOwner, upload: Upload, check: Callable[[int], None]) -> None:
    """Receive the body into the upload. If it breaks off, nothing is left. A broken quota ends it early."""
    look_at = LOOK_EVERY
    try:
        async for data in _paced(request):
            await upload.write(data)
            if upload.size >= look_at:
                look_at = upload.size + LOOK_EVERY
                check(upload.size)
    except WebHdfsError:
        await upload.abandon()
        await _drain(request)
        await owner.settled(owner.namespace.sequence)
        raise
    except BaseException:
        await upload.abandon()
        raise


async def _receive_growing(
    request: Request, owner: NamespaceOwner, begin: Callable[[], Awaitable[GrowingFile]]
) -> None:
    """Receive the body into a file that grows. If it breaks off, what has come stays."""
    request.take_any_time()
    try:
        growing = await begin()
        try:
            async for data in _paced(request):
                await growing.write(data)
        except BaseException:
            await growing.cut()
            raise
        await growing.finish()
    except WebHdfsError:
        await _drain(request)
        await owner.settled(owner.namespace.sequence)
        raise


async def _drain(request: Request) -> None:
    """Receive the rest of a body, because a client that is still sending reads no reply."""
    size = 0
    async for data in request.body:
        size += len(data)
        if size > DRAIN_MAX:
            return


async def _open(gateway: Gateway, request: Request) -> Reply:
    offset = request.query.long("offset", 0, minimum=0) or 0
    length = request.query.long("length", None, minimum=0)
    owner = await gateway.owner()
    if _is_step_one(request):
        await file_system.check_open(owner, request.path, offset)
        return _redirect(request, ("offset", offset), *_given(request.query, "length", "buffersize"))
    if request.method == "HEAD":
        raise IllegalArgumentError("Invalid operation OPEN")
    return Reply(200, content=await file_system.open_file(owner, request.path, offset, length))


async def _checksum(gateway: Gateway, request: Request) -> Reply:
    owner = await gateway.owner()
    if _is_step_one(request):
        await file_system.check_open(owner, request.path, 0)
        return _redirect(request)
    opened = await file_system.open_file(owner, request.path, 0, None)
    found = await file_system.status(owner, request.path)
    checksum = CompositeChecksum(found.block_size)
    async for data in opened:
        checksum.add(data)
    return Reply(200, replies.file_checksum(*checksum.finish()))


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
    return _DONE


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
    return Reply(200, replies.boolean(done)) if mode is RenameMode.BARE else _DONE


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
    return _DONE


async def _set_owner(gateway: Gateway, request: Request) -> Reply:
    user, group = request.query.text("owner"), request.query.text("group")
    if user is None and group is None:
        raise IllegalArgumentError("Both owner and group are empty.")
    await file_system.set_attributes(await gateway.owner(), SetAttributes(request.path, owner=user, group=group))
    return _DONE


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
    return _DONE


OPERATIONS: Final[dict[tuple[str, str], Operation]] = {
    ("PUT", "CREATE"): _create,
    ("POST", "APPEND"): _append,
    ("GET", "OPEN"): _open,
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
    ("GET", "GETFILECHECKSUM"): _checksum,
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
