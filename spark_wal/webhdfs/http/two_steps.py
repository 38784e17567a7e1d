"""The operations of two steps, by which the bytes of files come and go: CREATE, APPEND, OPEN, GETFILECHECKSUM.

The first step is answered by a redirect *to this very gateway* (Hadoop's client insists on one). The second carries
``namenoderpcaddress``, as HDFS's does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

from spark_wal.webhdfs.contents.uploads import Upload
from spark_wal.webhdfs.errors import IllegalArgumentError, WebHdfsError
from spark_wal.webhdfs.files.paths import encode_path
from spark_wal.webhdfs.http import rates, replies
from spark_wal.webhdfs.http.checksum import CompositeChecksum
from spark_wal.webhdfs.http.parameters import CREATE_FLAGS
from spark_wal.webhdfs.http.request import DONE, Reply, Request, given_parameters, is_step_one, redirect
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.file_system import CreateOptions
from spark_wal.webhdfs.ownership.gateway import Gateway
from spark_wal.webhdfs.ownership.growing_file import GrowingFile
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner

DRAIN_MAX: Final = 256 << 20
"""Bytes that are received of a refused file, so that its sender reads the reason."""

LOOK_EVERY: Final = 4 << 20
"""Bytes of an upload between two checks of the quotas."""

UPLOADS: Final = frozenset(("CREATE", "APPEND"))
"""Operations whose second step brings bytes."""


async def create(gateway: Gateway, request: Request) -> Reply:
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
    if is_step_one(request.query):
        flags_given = ",".join(name for name in CREATE_FLAGS if name in given)
        rest = given_parameters(query, "blocksize", "buffersize", "permission", "replication", "unmaskedpermission")
        parameters = [("createparent", str(options.create_parent).lower()), ("overwrite", str(overwrite).lower())]
        return redirect(request, ("createflag", flags_given), *parameters, *rest)
    try:
        file_system.check_create(owner, request.path, options)
    except WebHdfsError:
        await drain(request)
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


async def append(gateway: Gateway, request: Request) -> Reply:
    owner = await gateway.owner()
    if is_step_one(request.query):
        await file_system.check_append(owner, request.path)
        return redirect(request, *given_parameters(request.query, "buffersize"))
    try:
        file = file_system.begin_append(owner, request.path)
    except WebHdfsError:
        await drain(request)
        await owner.settled(owner.namespace.sequence)
        raise
    try:
        if owner.growing_paths.holds(request.path):
            await _receive_growing(request, owner, partial(file_system.grow, owner, file))
            return DONE
        upload = owner.uploads.begin()
        await _receive(request, owner, upload, lambda size: owner.namespace.check_more(file.path, size))
        await file_system.finish_append(owner, file, upload)
    finally:
        owner.namespace.unfollow(file)
    return DONE


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
        await drain(request)
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
        await drain(request)
        await owner.settled(owner.namespace.sequence)
        raise


async def drain(request: Request) -> None:
    """Receive the rest of a body, because a client that is still sending reads no reply."""
    size = 0
    async for data in request.body:
        size += len(data)
        if size > DRAIN_MAX:
            return


async def open_file(gateway: Gateway, request: Request) -> Reply:
    offset = request.query.long("offset", 0, minimum=0) or 0
    length = request.query.long("length", None, minimum=0)
    owner = await gateway.owner()
    if is_step_one(request.query):
        await file_system.check_open(owner, request.path, offset)
        return redirect(request, ("offset", offset), *given_parameters(request.query, "length", "buffersize"))
    if request.method == "HEAD":
        raise IllegalArgumentError("Invalid operation OPEN")
    return Reply(200, content=await file_system.open_file(owner, request.path, offset, length))


async def file_checksum(gateway: Gateway, request: Request) -> Reply:
    owner = await gateway.owner()
    if is_step_one(request.query):
        await file_system.check_open(owner, request.path, 0)
        return redirect(request)
    opened = await file_system.open_file(owner, request.path, 0, None)
    found = await file_system.status(owner, request.path)
    checksum = CompositeChecksum(found.block_size)
    async for data in opened:
        checksum.add(data)
    return Reply(200, replies.file_checksum(*checksum.finish()))


def _paced(request: Request) -> AsyncIterator[bytes]:
    """The bytes of an upload, no faster than its caller's rates admit them."""
    return rates.paced(request.permissions, request.principal, request.body)
