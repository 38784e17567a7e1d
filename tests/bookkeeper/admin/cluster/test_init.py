"""``bk init``."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.meta import Metadata
from bookkeeper.real import run, system_seams
from tests.bookkeeper.admin.commands import bk


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/metadata.db"


def test_init_makes_a_cluster_that_can_be_joined(uri: str) -> None:
    async def instance() -> str:
        metadata = await Metadata.connect(uri, system_seams())
        await metadata.close()
        return metadata.instance_id

    said = bk("init", "-m", uri, "--json").document
    assert said == {"instance_id": run(instance()), "metadata": uri}
    assert bk("bookies", "-m", uri, "--json").document == []


def test_init_says_where_for_people(uri: str) -> None:
    assert bk("init", "-m", uri).out.startswith(f"made a new cluster at {uri}, instance ")


def test_init_refuses_a_cluster_that_is_there_and_leaves_it(uri: str) -> None:
    before = bk("init", "-m", uri, "--json").document
    bk("init", "-m", uri).refused(f"there is already a cluster at {uri}", "and it was not changed")
    assert bk("bookies", "-m", uri).status == 0
    assert before["metadata"] == uri


def test_init_without_a_store_has_changed_nothing_and_does_not_doubt_it(tmp_path: Path) -> None:
    said = bk("init", "-m", f"sqlite://{tmp_path}")
    said.refused(f"{tmp_path} is a directory")
    assert "may have been made" not in said.err
    assert "may or may not" not in said.err


@pytest.mark.parametrize("kind", ["embedded:///nowhere", "memory:"])
def test_init_of_a_cluster_that_needs_none_says_so(kind: str) -> None:
    bk("init", "-m", kind).refused("needs no init", status=2)
