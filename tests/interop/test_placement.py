"""Q6 beside Java's RackawareEnsemblePlacementPolicy: for the same topologies and requests never a worse spread.

Java's policy draws lots, so each request is made several times, and the best that Java has found counts.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from bookkeeper.errors import NotEnoughBookiesError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location
from bookkeeper.ledger.placement import SpreadChoice
from bookkeeper.ledger.quorum import QuorumSpec
from examples.apache_servers import whats_missing
from tests.bookkeeper.ledger.placement.topologies import racks_in_worst_window
from tests.interop.java_client import Java, JavaError

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
if (_missing := whats_missing()) is not None:
    pytest.skip(_missing, allow_module_level=True)

TOPOLOGIES: Final = 40
TRIES: Final = 4
"""How often Java's policy is asked the same."""

Where = Mapping[BookieId, Location]


class Places(NamedTuple):
    """Where bookies stand, for our policy."""

    where: Where
    version: int = 0

    def of(self, bookie: BookieId) -> Location:
        return self.where[bookie]


class Request(NamedTuple):
    """A topology, and what is asked of it."""

    where: Where
    spec: QuorumSpec
    excluded: frozenset[BookieId]


def requests() -> list[Request]:
    """The same at each run."""
    chance, made = random.Random(6), []
    for number in range(TOPOLOGIES):
        count, racks = chance.randint(3, 9), chance.randint(1, 4)
        names = [BookieId(f"10.0.{number}.{at}:3181") for at in range(1, count + 1)]
        where = {name: Location.parse(f"/rack{chance.randint(1, racks)}") for name in names}
        size = chance.randint(2, min(5, count))
        copies = chance.randint(2, min(3, size))
        spec = QuorumSpec(ensemble_size=size, write_quorum=copies, ack_quorum=chance.randint(1, copies))
        left_out = chance.sample(names, chance.randint(0, 1))
        made.append(Request(where, spec, frozenset(left_out)))
    return made


def known_racks() -> Where:
    """Ten bookies in one rack, and one in another."""
    names = [BookieId(f"10.9.0.{at}:3181") for at in range(1, 12)]
    return {name: Location.parse("/other" if name == names[6] else "/most") for name in names}


class JavasPolicy:
    """RackawareEnsemblePlacementPolicy as a client has it, for bookies in racks that a script tells."""

    def __init__(self, java: Java, script: Path, where: Where) -> None:
        self._java, jvm = java, java.jvm
        bookkeeper = jvm.org.apache.bookkeeper
        configuration = bookkeeper.conf.ClientConfiguration()
        configuration.setProperty("networkTopologyScriptFileName", str(script))
        configuration.setProperty("ignoreLocalNodeInPlacementPolicy", "true")
        self._id = bookkeeper.net.BookieId.parse
        self._policy = bookkeeper.client.RackawareEnsemblePlacementPolicy()
        self._policy.initialize(
            configuration,
            jvm.java.util.Optional.empty(),
            jvm.io.netty.util.HashedWheelTimer(),
            bookkeeper.feature.SettableFeatureProvider.DISABLE_ALL,
            bookkeeper.stats.NullStatsLogger.INSTANCE,
            bookkeeper.net.BookieSocketAddress.LEGACY_BOOKIEID_RESOLVER,
        )
        self._policy.onClusterChanged(self._set(where), self._set(()))

    def new_ensemble(self, spec: QuorumSpec, excluded: Collection[BookieId]) -> tuple[BookieId, ...] | None:
        """None: it has refused."""
        sizes = (spec.ensemble_size, spec.write_quorum, spec.ack_quorum)
        try:
            found = self._java.call(lambda: self._policy.newEnsemble(*sizes, None, self._set(excluded)))
        except JavaError as error:
            assert error.name == "BKNotEnoughBookiesException", error
            return None
        return tuple(BookieId(str(each)) for each in found.getResult())

    def replace(self, spec: QuorumSpec, ensemble: Sequence[BookieId], failed: BookieId) -> BookieId | None:
        """A stand-in; None: it has refused."""
        sizes = (spec.ensemble_size, spec.write_quorum, spec.ack_quorum)
        members = self._java.jvm.java.util.ArrayList(self._set(()))
        for each in ensemble:
            members.add(self._id(str(each)))
        try:
            found = self._java.call(
                lambda: self._policy.replaceBookie(*sizes, None, members, self._id(str(failed)), self._set(()))
            )
        except JavaError as error:
            assert error.name == "BKNotEnoughBookiesException", error
            return None
        return BookieId(str(found.getResult()))

    def _set(self, names: Collection[str]) -> Any:
        found = self._java.jvm.java.util.HashSet()
        for name in names:
            found.add(self._id(str(name)))
        return found


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    running = Java(tmp_path_factory.mktemp("java"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tells the racks of all topologies."""
    directory = tmp_path_factory.mktemp("racks")
    where = [known_racks(), *(each.where for each in requests())]
    rows = [f"{name.partition(':')[0]} {place}\n" for each in where for name, place in each.items()]
    (directory / "racks").write_text("".join(rows))
    told = directory / "racks.sh"
    told.write_text(
        f'#!/bin/sh\nfor ip; do grep "^$ip " {directory}/racks | cut -d" " -f2 | grep . || echo /default-rack; done\n'
    )
    told.chmod(0o755)
    return told


def ours(request: Request) -> SpreadChoice:
    return SpreadChoice(Places(request.where), racks_min=2)


def shuffled(names: Collection[BookieId], seed: int) -> list[BookieId]:
    """Candidates as a client has them."""
    found = sorted(names)
    random.Random(seed).shuffle(found)
    return found


def test_javas_policy_knows_the_racks(java: Java, script: Path) -> None:
    """Otherwise the other tests would compare with chance: here one of eleven bookies stands in another rack."""
    where = known_racks()
    spec = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=2)
    theirs = JavasPolicy(java, script, where)
    for _ in range(TRIES):
        found = theirs.new_ensemble(spec, ())
        assert found is not None and len({where[each] for each in found}) == 2


@pytest.mark.rule("Q6")
def test_new_ensembles_never_have_a_worse_spread_than_javas(java: Java, script: Path) -> None:
    better = compared = 0
    for seed, request in enumerate(requests()):
        theirs = JavasPolicy(java, script, request.where)
        tried = [theirs.new_ensemble(request.spec, request.excluded) for _ in range(TRIES)]
        found = [racks_in_worst_window(request.spec, each, request.where)[1] for each in tried if each is not None]
        try:
            chosen = ours(request).new_ensemble(request.spec, shuffled(request.where, seed), excluded=request.excluded)
        except NotEnoughBookiesError:
            assert not found, (request, tried)
            continue
        assert not set(chosen) & request.excluded
        racks = racks_in_worst_window(request.spec, chosen, request.where)[1]
        if found:
            compared += 1
            assert racks >= max(found), (request, chosen, tried)
            better += racks > min(found)
    assert compared >= TOPOLOGIES // 2, "Java's policy has refused most: nothing was compared"
    print(f"of {compared} requests ours had more racks than some answer of Java's in {better}")


@pytest.mark.rule("Q6")
def test_stand_ins_never_leave_a_worse_spread_than_javas(java: Java, script: Path) -> None:
    better = compared = 0
    for seed, request in enumerate(requests()):
        names = shuffled(request.where, seed)
        ensemble = tuple(names[: request.spec.ensemble_size])
        failed, spares = ensemble[seed % len(ensemble)], names[request.spec.ensemble_size :]
        if not spares:
            continue
        theirs = JavasPolicy(java, script, request.where)
        tried = [theirs.replace(request.spec, ensemble, failed) for _ in range(TRIES)]
        stand_in = ours(request).replace(request.spec, ensemble, [failed], spares)[failed]

        def racks(new: BookieId) -> int:
            after = [new if each == failed else each for each in ensemble]  # noqa: B023  # called at once
            return racks_in_worst_window(request.spec, after, request.where)[1]  # noqa: B023

        found = [racks(each) for each in tried if each is not None]
        if found:
            compared += 1
            assert racks(stand_in) >= max(found), (request, ensemble, failed, stand_in, tried)
            better += racks(stand_in) > min(found)
    assert compared >= TOPOLOGIES // 4, "Java's policy has refused most: nothing was compared"
    print(f"of {compared} stand-ins ours left more racks than some of Java's in {better}")
