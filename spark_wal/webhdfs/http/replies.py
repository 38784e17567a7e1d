"""The JSON of WebHDFS's replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from spark_wal.webhdfs.errors import WebHdfsError
from spark_wal.webhdfs.files.tree_answers import ContentSummary
from spark_wal.webhdfs.http.blocks import HOST, PORT, FileBlock, blocks_of
from spark_wal.webhdfs.ownership.file_system import FileStatus

BLOCK_SIZE: Final = 128 << 20

SERVER_DEFAULTS: Final[dict[str, Any]] = {
    "FsServerDefaults": {
        "replication": 1,
        "encryptDataTransfer": False,
        "defaultStoragePolicyId": 7,
        "writePacketSize": 65536,
        "fileBufferSize": 4096,
        "checksumType": 2,  # CRC32C, as a number: Hadoop's client casts it
        "trashInterval": 0,
        "keyProviderUri": "",
        "blockSize": BLOCK_SIZE,
        "bytesPerChecksum": 512,
    }
}


RACK: Final = "/default-rack"

_DATANODE: Final[dict[str, Any]] = {
    "adminState": "NORMAL",
    "blockPoolUsed": 0,
    "cacheCapacity": 0,
    "cacheUsed": 0,
    "capacity": 0,
    "dfsUsed": 0,
    "hostName": HOST,
    "infoPort": 0,
    "infoSecurePort": 0,
    "ipAddr": "127.0.0.1",
    "ipcPort": 0,
    "lastBlockReportMonotonic": 0,
    "lastBlockReportTime": 0,
    "lastUpdate": 0,
    "lastUpdateMonotonic": 0,
    "name": f"{HOST}:{PORT}",
    "networkLocation": RACK,
    "remaining": 0,
    "storageID": "",
    "xceiverCount": 0,
    "xferPort": PORT,
}
"""The fields that clients expect of a machine; only the host's name means anything to them."""


_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def dumps(fields: object) -> bytes:
    return _JSON.encode(fields).encode("utf-8", "replace")


def boolean(value: bool) -> bytes:
    return b'{"boolean":true}' if value else b'{"boolean":false}'


def path(value: str) -> bytes:
    return dumps({"Path": value})


def location(url: str) -> bytes:
    """The answer of a redirected operation when no redirect is wanted."""
    return dumps({"Location": url})


def remote_exception(error: WebHdfsError) -> bytes:
    """The answer of every refusal."""
    message = str(error) or None
    return dumps({"RemoteException": {"exception": error.name, "javaClassName": error.java_class, "message": message}})


def status_fields(status: FileStatus) -> dict[str, Any]:
    """The fields of a FileStatus."""
    return {
        "accessTime": status.accessed_ms,
        "blockSize": status.block_size,
        "childrenNum": status.children,
        "fileId": status.inode,
        "group": status.group,
        "length": status.length,
        "modificationTime": status.modified_ms,
        "owner": status.owner,
        "pathSuffix": status.name,
        "permission": f"{status.permission:o}",
        "replication": status.replication,
        "storagePolicy": 0,
        "type": "DIRECTORY" if status.is_directory else "FILE",
    }


def file_status(status: FileStatus) -> bytes:
    return dumps({"FileStatus": status_fields(status)})


def file_statuses(statuses: Sequence[FileStatus]) -> bytes:
    """A list of FileStatuses, with a line for each entry, as HDFS writes it."""
    lines = b",\n".join(dumps(status_fields(s)) for s in statuses)
    return b'{"FileStatuses":{"FileStatus":[\n' + lines + b"\n]}}\n"


def directory_listing(statuses: Sequence[FileStatus], remaining: int) -> bytes:
    """One page of LISTSTATUS_BATCH."""
    partial = {"FileStatuses": {"FileStatus": [status_fields(s) for s in statuses]}}
    return dumps({"DirectoryListing": {"partialListing": partial, "remainingEntries": remaining}})


def content_summary(summary: ContentSummary) -> bytes:
    return dumps(
        {
            "ContentSummary": {
                "directoryCount": summary.directories,
                "ecPolicy": "" if summary.directories else "Replicated",
                "fileCount": summary.files,
                "length": summary.length,
                "quota": -1 if summary.names_quota is None else summary.names_quota,
                "snapshotDirectoryCount": 0,
                "snapshotFileCount": 0,
                "snapshotLength": 0,
                "snapshotSpaceConsumed": 0,
                "spaceConsumed": summary.length,
                "spaceQuota": -1 if summary.quota is None else summary.quota,
                "typeQuota": {},
            }
        }
    )


def file_checksum(algorithm: str, data: str, length: int) -> bytes:
    return dumps({"FileChecksum": {"algorithm": algorithm, "bytes": data, "length": length}})


def block_locations(blocks: Sequence[FileBlock]) -> bytes:
    """The answer of GETFILEBLOCKLOCATIONS."""
    place = f"{HOST}:{PORT}"
    return dumps(
        {
            "BlockLocations": {
                "BlockLocation": [
                    {
                        "topologyPaths": [f"{RACK}/{place}"],
                        "corrupt": False,
                        "cachedHosts": [],
                        "names": [place],
                        "offset": block.offset,
                        "hosts": [HOST],
                        "length": block.length,
                        "storageTypes": ["DISK"],
                    }
                    for block in blocks
                ]
            }
        }
    )


def located_blocks(status: FileStatus, blocks: Sequence[FileBlock]) -> bytes:
    """The answer of GET_BLOCK_LOCATIONS."""
    last = [*blocks_of(status.length, status.block_size, max(status.length - 1, 0), None)][-1:]
    return dumps(
        {
            "LocatedBlocks": {
                "fileLength": status.length,
                "isLastBlockComplete": bool(last),
                "isUnderConstruction": False,
                "lastLocatedBlock": _located(status, last[0]) if last else None,
                "locatedBlocks": [_located(status, block) for block in blocks],
            }
        }
    )


def _located(status: FileStatus, block: FileBlock) -> dict[str, Any]:
    return {
        "block": {
            "blockId": (status.inode << 20) + block.number,
            "blockPoolId": "BP-0",
            "generationStamp": 0,
            "numBytes": block.length,
        },
        "blockToken": {"urlString": "AAAAAA"},  # an empty one
        "cachedLocations": [],
        "isCorrupt": False,
        "locations": [_DATANODE],
        "startOffset": block.offset,
        "storageTypes": ["DISK"],
    }


def fs_status(used: int, capacity: int) -> bytes:
    return dumps({"FsStatus": {"used": used, "remaining": max(capacity - used, 0), "capacity": capacity}})
