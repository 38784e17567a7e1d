from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from bookkeeper.errors import ConfigError, DirectoryLockedError
from bookkeeper.real import system_seams
from spark_wal.webhdfs.ownership.backing import Backing
from spark_wal.webhdfs.ownership.open_backing import open_backing


async def backing(uri: str) -> Backing:
    return await open_backing(uri, system_seams(), namespace="n", owner="o", address="h:1")


async def test_a_directory_is_used_by_one_gateway_at_a_time(tmp_path: Path) -> None:
    first = await backing(f"file://{tmp_path}/place")
    with pytest.raises(DirectoryLockedError):
        await backing(f"file://{tmp_path}/place")
    await first.close()
    second = await backing(f"file://{tmp_path}/place")
    opened = await second.open_namespace()
    assert opened.log.token.epoch == 1
    await opened.log.close()
    await opened.snapshots.close()
    await second.close()


@pytest.mark.parametrize("name", ["a b", "a%20b", "a%2520b", "q?x", "x#y", "100%"])
async def test_everything_of_a_namespace_is_in_the_directory_that_its_address_names(tmp_path: Path, name: str) -> None:
    """The cause: the journal's address was pasted together from the decoded directory, and so it was decoded twice:
    two gateways, each with the lock of its own directory, wrote one journal (``a%20b`` and ``a b``), and a directory
    with a ? in its name was refused."""
    opened = await backing(f"file://{tmp_path}/{quote(name)}")
    claimed = await opened.open_namespace()
    await claimed.log.close()
    await claimed.snapshots.close()
    await opened.close()
    assert os.listdir(tmp_path) == [name]
    assert sorted(os.listdir(tmp_path / name / "n")) == ["blobs", "journal", "lock"]


async def test_a_journal_that_an_earlier_version_put_elsewhere_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    """Its blobs would be taken for orphans, and deleted."""
    (tmp_path / "a%20b" / "n" / "blobs").mkdir(parents=True)
    (tmp_path / "a b" / "n" / "journal").mkdir(parents=True)
    uri = f"file://{tmp_path}/a%2520b"
    with pytest.raises(ConfigError, match=r"earlier versions kept it in .*a b/n/journal"):
        await backing(uri)
    (tmp_path / "a b" / "n" / "journal").rename(tmp_path / "a%20b" / "n" / "journal")
    await (await backing(uri)).close()


@pytest.mark.parametrize("namespace", ["", "%41", "a?digest=crc32", "a#b"])
async def test_a_namespace_whose_name_says_something_in_an_address_is_refused(namespace: str) -> None:
    """The cause: the name was pasted into the journal's address: ``%41`` and ``A`` had two leases and one journal."""
    with pytest.raises(ConfigError, match="the name of a namespace is not empty and has none of"):
        await open_backing("mem:x", system_seams(), namespace=namespace, owner="o", address="h:1")


@pytest.mark.parametrize(
    "uri", ["/just/a/path", "file://host/dir", "file:///dir?x=1", "file:///tmp/a%zz", "nonsense://x"]
)
async def test_what_is_no_address(uri: str) -> None:
    with pytest.raises(ConfigError):
        await backing(uri)
