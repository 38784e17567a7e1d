from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.errors import BookKeeperError, MetadataError
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta import Metadata, init_cluster
from bookkeeper.real import run, system_seams
from tests.interop.apache_shell import apache_init, shell

pytestmark = pytest.mark.interop


async def layout(uri: str) -> str:
    metadata = await Metadata.connect(uri, system_seams())
    try:
        return metadata.layout.name
    finally:
        await metadata.close()


def test_a_cluster_that_java_has_made_is_one_for_us(java_cluster: str) -> None:
    assert run(layout(java_cluster)) == "HIERARCHICAL"
    with pytest.raises(MetadataError, match="already exists"):
        apache_init(java_cluster)


def test_a_cluster_that_we_have_made_is_one_for_java(apache: None, tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path) as zookeeper:
        run(init_cluster(zookeeper.uri, system_seams()))
        assert "ERROR" not in shell("listledgers", uri=zookeeper.uri)


def test_another_exit_status_is_told_with_what_was_said(java_cluster: str) -> None:
    with pytest.raises(BookKeeperError, match=r"bookkeeper shell nosuchcommand ended with exit status"):
        shell("nosuchcommand", uri=java_cluster)
    assert shell("nosuchcommand", uri=java_cluster, expect=None)
