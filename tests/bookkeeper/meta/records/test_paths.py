from __future__ import annotations

import pytest

from bookkeeper.ids import BookieId
from bookkeeper.meta.records.paths import Paths


def test_javas_names() -> None:
    paths, bookie = Paths("/bk/ledgers"), BookieId("a:1")
    assert paths.layout == "/bk/ledgers/LAYOUT"
    assert paths.instance_id == "/bk/ledgers/INSTANCEID"
    assert paths.available_bookie(bookie) == "/bk/ledgers/available/a:1"
    assert paths.read_only_bookie(bookie) == "/bk/ledgers/available/readonly/a:1"
    assert paths.cookie(bookie) == "/bk/ledgers/cookies/a:1"
    assert paths.id_generator == "/bk/ledgers/idgen"
    assert paths.long_id_generator == "/bk/ledgers/idgen-long"


def test_our_own_state_lies_beside_the_root_never_under_it() -> None:
    assert Paths("/bk/ledgers").own("boot", "a:1") == "/bk/ledgers-py/boot/a:1"


def test_the_roots_of_a_cluster_and_of_its_store_differ() -> None:
    for root in ("/", "ledgers", "/a//b"):
        with pytest.raises(ValueError, match=r"root|path"):
            Paths(root)
