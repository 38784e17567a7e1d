from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

from segments.position import Position
from tests.segments.chain.test_stream_chain import chain_of
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.stream_cluster import StreamCluster
from tests.segments.world.world_state import HOSTS, WorldState


def world() -> WorldState:
    witness = ChainWitness()
    return WorldState(1, StreamCluster(1, witness), witness, gateways=True, rng=Random(1))


def test_the_owner_is_the_gateway_that_lives_and_says_so() -> None:
    state = world()
    assert state.owner == state.turn
    for name in HOSTS[1:]:
        state.ownerships[name] = cast(Any, SimpleNamespace(is_here=True))
    assert state.owner == HOSTS[1]
    state.cluster.world.node(HOSTS[1]).crash()
    assert state.owner == HOSTS[2]
    state.cluster.world.close()


def test_an_answer_from_a_segment_that_the_record_does_not_name_is_found() -> None:
    state = world()
    state.witness.see(chain_of(3, opened=True))
    state.judge.on_sent(b"a")
    state.on_acked(b"a", Position(2, 0, 0))
    assert state.witness.problems == [] and state.judge.acked == {b"a": Position(2, 0, 0)}
    state.on_acked(b"b", Position(3, 0, 0))
    assert "C1" in state.witness.problems[0]
    state.cluster.world.close()
