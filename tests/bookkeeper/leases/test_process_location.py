from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bookkeeper.leases.process_location import NOWHERE, OwnLocation, ProcessLocation, own_location


def ours(listen: str = "127.0.0.1:1") -> ProcessLocation:
    place = own_location(listen).place
    assert place is not None
    return place


def test_a_place_survives_its_bytes() -> None:
    assert ProcessLocation.of(json.loads(json.dumps(ours().fields()))) == ours()


@pytest.mark.parametrize("wrong", [{}, {"pid": "x"}, {"pid": 1 << 40}, {"pid": 0}, {"network": 3}])
@pytest.mark.rule("X29")
def test_what_is_no_place(wrong: dict[str, object]) -> None:
    fields = {**ours().fields(), **wrong} if wrong else {}
    with pytest.raises((KeyError, ValueError, TypeError)):
        ProcessLocation.of(fields)


@pytest.mark.rule("S12")
def test_a_process_is_known_dead_once_it_is_and_only_where_it_would_be_known() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with open(f"/proc/{child.pid}/stat", "rb") as file:
        started = int(file.read().rpartition(b")")[2].split()[19])
    here = own_location("127.0.0.1:1")
    theirs = ours()
    there = replace(theirs, process=replace(theirs.process, pid=child.pid, started=started))
    assert not here.knows_dead(there)
    assert not here.knows_dead(here.place)
    child.communicate(b"\n")
    assert here.knows_dead(there)
    for elsewhere in (replace(there.process, boot="another"), replace(there.process, namespace="another")):
        assert not here.knows_dead(replace(there, process=elsewhere)), "it may be alive on another machine"
    assert not here.knows_dead(None)
    assert not NOWHERE.knows_dead(there)


@pytest.mark.rule("S12")
def test_only_the_same_address_in_the_same_network_is_the_same() -> None:
    here, there = own_location("127.0.0.1:1"), ours()
    assert here.has_address_of(replace(there, process=replace(there.process, pid=1, namespace="another container")))
    assert not here.has_address_of(ours("127.0.0.1:2"))
    assert not here.has_address_of(replace(there, network="net:[2]"))
    assert not here.has_address_of(replace(there, process=replace(there.process, boot="another machine")))
    assert not here.has_address_of(None)
    assert not OwnLocation().has_address_of(there)


def test_where_the_kernel_does_not_tell_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(path: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "readlink", none)
    assert own_location("127.0.0.1:1") is NOWHERE
