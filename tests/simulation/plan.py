"""What one seed simulates: the shape of the cluster, who uses it, and which kinds of faults it meets (a swarm).

Every seed draws a *subset* of the kinds of faults, because a fault that is always there hides what happens
without it, and tiny files, because everything that rolls and wraps must do so often.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from bookkeeper.client.config import ClientConfig
from bookkeeper.encryption import CallableKeys, EncryptionConfig, KeyRing
from bookkeeper.ledger import QuorumSpec

KIB: Final = 1024

SHAPES: Final = ((1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2), (4, 2, 2), (5, 3, 2))
"""Ensemble, write quorum, ack quorum."""

FAULTS: Final = (
    "slow_link",
    "reset",
    "partition",
    "one_way",
    "crash",
    "freeze",
    "disk_full",
    "fsync_error",
    "slow_disk",
    "lose_bookie",
    "session",
    "outage",
    "lost_reply",
    "client_crash",
    "clock",
)
"""Every kind of fault; :mod:`tests.simulation.faults.nemesis` has one method for each."""


LATER_FAULTS: Final = ("reborn",)
"""Younger than docs/faultlog.md: drawn apart, and only where :data:`FIRST_OF_LATER` allows."""


DECAY: Final = ("decay",)
"""What happens to entry logs while their bookie serves: from :data:`FIRST_WITH_SCRUB` on."""


VOLUME_FAULTS: Final = ("disk_error", "disk_emptied", "directory_full", "drain", "grow")
"""What happens to one of several ledger directories: from :data:`FIRST_WITH_VOLUMES` on. One method of
:mod:`tests.simulation.faults.volume_faults` for each."""


ENDED_WRITES: Final = ("ended_write",)
"""What happens to sessions with the metadata store: from :data:`FIRST_WITH_ENDED_WRITES` on."""


DAMAGES: Final = ("rot", "thin", "older_copy", "exchanged", "lag")
"""What happens to files and to metadata stores: from :data:`FIRST_WITH_DAMAGE` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldPlan:
    """Drawn from a seed, and nothing but the seed."""

    seed: int
    bookies: int
    writers: int
    recoverers: int
    tailers: int
    shapes: tuple[QuorumSpec, ...]
    """What new ledgers are drawn from."""
    faults: tuple[str, ...]
    chaos_s: float
    """Virtual seconds of faults; the quiet phase comes after it."""
    fault_pause_s: float
    """Mean time between two faults."""
    down_max: int
    """How many bookies may be in trouble at once."""
    append_pause_s: float
    """Mean pause between two bursts of appends."""
    ledger_bursts: int
    """Bursts after which a writer goes on to its next ledger."""
    direct: bool
    """Do the file systems know O_DIRECT?"""
    storage: dict[str, Any]
    client: ClientConfig
    repairers: int = 0
    """Processes that bring copies of ledgers to other bookies."""
    healers: int = 0
    """Processes of autorecovery."""
    litter: bool = False
    """Ledgers come and go on every bookie's disk, and entry logs are compacted."""
    deferred: bool = False
    """Some ledgers are written with deferred sync, and forced now and then."""
    rollback_after_s: float = 0.0
    """If not 0: to the state of that moment of the chaos the metadata are put back when it is over."""
    undeleters: int = 0
    """Processes that delete ledgers and bring them back."""
    directories: int = 0
    """Ledger directories of every bookie, each on a disk of its own; 0: one, on the disk with everything else."""
    racks: int = 0
    """In how many racks the bookies stand, one after the other; 0: nobody knows of racks."""
    bookie: dict[str, Any] = field(default_factory=dict)
    """Other options of every bookie."""

    def __str__(self) -> str:
        shapes = " ".join(f"{s.ensemble_size}/{s.write_quorum}/{s.ack_quorum}" for s in self.shapes)
        people = f"{self.writers} writers, {self.recoverers} recoverers, {self.tailers} tailers"
        people += f", {self.repairers} repairers" if self.repairers else ""
        people += f", {self.healers} healers" if self.healers else ""
        people += f", {self.undeleters} undeleters" if self.undeleters else ""
        disks = f", {self.directories} ledger directories" if self.directories else ""
        disks += f", {self.racks} racks{' (enforced)' if self.client.racks_enforced else ''}" if self.racks else ""
        back = f"; metadata put back to {self.rollback_after_s:.1f} s" if self.rollback_after_s else ""
        return (
            f"{self.bookies} bookies{disks}, {people}, {shapes}, {self.client.protocol}, {self.chaos_s:.0f} s of "
            f"{' '.join(self.faults)}; at most {self.down_max} down{back}"
        )


def plan(seed: int) -> WorldPlan:
    """The plan of a seed."""
    rng = Random(f"plan/{seed}")
    bookies = rng.choice([3, 3, 4, 4, 5])
    faults = tuple(fault for fault in FAULTS if rng.random() < 0.4) or (rng.choice(FAULTS),)
    fitting = [shape for shape in SHAPES if shape[0] <= bookies]
    if "lose_bookie" in faults:  # F3: up to Qa - 1 copies
        fitting = [shape for shape in fitting if shape[2] >= 2]
    shapes = tuple(
        QuorumSpec(ensemble_size=e, write_quorum=w, ack_quorum=a)
        for e, w, a in rng.sample(fitting, min(len(fitting), rng.randint(1, 3)))
    )
    made = WorldPlan(
        seed=seed,
        bookies=bookies,
        writers=rng.randint(1, 3),
        recoverers=rng.randint(1, 3),
        tailers=rng.randint(1, 2),
        shapes=shapes,
        faults=(*faults, *_later_faults(seed, faults, shapes)),
        chaos_s=rng.uniform(8, 25),
        fault_pause_s=rng.choice([0.3, 0.7, 1.5]),
        down_max=rng.choice([1, 1, 2, bookies]),
        append_pause_s=rng.choice([0.02, 0.05, 0.15]),
        ledger_bursts=rng.choice([5, 20, 60]),
        direct=rng.random() < 0.5,
        storage={**_storage(rng), **_later(seed)},
        client=(client := _client(rng)),
        repairers=Random(f"plan/{seed}/repairers").choice([0, 0, 1, 2]) if seed >= FIRST_WITH_REPAIRERS else 0,
        deferred=client.protocol == "v3" and seed >= FIRST_OF_LATER and Random(f"plan/{seed}/deferred").random() < 0.4,
    )
    if seed >= FIRST_WITH_ENDED_WRITES:
        return _with_ended_writes(made)
    if seed >= FIRST_WITH_RACKS:
        return _with_racks(made)
    if seed >= FIRST_WITH_ENCRYPTION:
        return _with_encryption(made)
    if seed >= FIRST_WITH_UNDELETION:
        return _with_undeletion(made)
    if seed >= FIRST_WITH_VOLUMES:
        return _with_volumes(made)
    if seed >= FIRST_WITH_COLLECTION:
        return _with_collection(made)
    if seed >= FIRST_WITH_LEDGER_LOGS:
        return _with_ledger_logs(made)
    if seed >= FIRST_WITH_SCRUB:
        return _with_scrub(made)
    if seed >= FIRST_WITH_COMPACTION:
        return _with_compaction(made)
    if seed >= FIRST_WITH_HEALERS:
        return _with_healers(made)
    if seed >= FIRST_WITH_ROLLBACK and seed % 2 == 0:
        return _with_rollback(made)
    return made if seed < FIRST_WITH_DAMAGE else _with_damage(made)


def _storage(rng: Random) -> dict[str, Any]:
    return {
        "journal_file_bytes": rng.choice([16, 32, 64]) * KIB,
        "journal_spares": rng.randint(0, 2),
        "group_bytes": rng.choice([4, 8, 64]) * KIB,
        "inflight_bytes": 256 * KIB,
        "entry_log_bytes": rng.choice([8, 32, 128]) * KIB,
        "checkpoint_bytes": rng.choice([4, 16, 64]) * KIB,
        "index_segments": rng.randint(2, 4),
        "page_cache_pages": rng.choice([1, 4, 64]),
        "reserve_bytes": 32 * KIB,
        "scrub_period_s": 0.0,
    }


FIRST_OF_LATER: Final = 100
FIRST_WITH_REPAIRERS: Final = 200
FIRST_WITH_DAMAGE: Final = 300
FIRST_WITH_ROLLBACK: Final = 2000
FIRST_WITH_HEALERS: Final = 4000
FIRST_WITH_COMPACTION: Final = 6000
FIRST_WITH_SCRUB: Final = 8000
FIRST_WITH_LEDGER_LOGS: Final = 10000
FIRST_WITH_COLLECTION: Final = 12000
FIRST_WITH_VOLUMES: Final = 14000
FIRST_WITH_UNDELETION: Final = 15000
FIRST_WITH_ENCRYPTION: Final = 16000
FIRST_WITH_RACKS: Final = 18000
FIRST_WITH_ENDED_WRITES: Final = 20000
"""Worlds of lower seeds, and what was found in them, stay as they are."""


def _later(seed: int) -> dict[str, Any]:
    """Options younger than docs/faultlog.md: drawn apart, and not for its seeds, whose worlds stay as they are."""
    rng = Random(f"plan/{seed}/later")
    if seed < FIRST_OF_LATER:
        return {}
    return {"inline_sync_us": rng.choice([0.0, 500.0]), "split_bytes": rng.choice([0, 2 * KIB, 256 * KIB])}


def _later_faults(seed: int, faults: tuple[str, ...], shapes: tuple[QuorumSpec, ...]) -> tuple[str, ...]:
    if seed < FIRST_OF_LATER or "lose_bookie" in faults or any(shape.ack_quorum < 2 for shape in shapes):
        return ()  # F3: one copy may be lost
    rng = Random(f"plan/{seed}/faults")
    return tuple(fault for fault in LATER_FAULTS if rng.random() < 0.4)


def _with_damage(made: WorldPlan) -> WorldPlan:
    """The same world, shorter and with fewer people, on disks and stores that are damaged. One bookie's copies at most
    (F3): no bookie is lost besides."""
    rng = Random(f"plan/{made.seed}/damage")
    others = tuple(fault for fault in made.faults if fault not in ("lose_bookie", "reborn"))
    damages = tuple(fault for fault in DAMAGES if rng.random() < 0.5) or (rng.choice(DAMAGES),)
    return replace(
        made,
        writers=min(made.writers, 2),
        recoverers=min(made.recoverers, 2),
        tailers=1,
        faults=(
            *rng.sample(others, min(len(others), 2)),
            "crash",
            *damages,
            *damages,
            *(kind for kind in damages if kind != "lag"),
        ),
        chaos_s=rng.uniform(8, 16),
        fault_pause_s=0.3,
    )


def _with_healers(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where bookies lose their disks, and autorecovery repairs what that costs. Every ledger
    has a second copy of what was acknowledged (F3)."""
    rng = Random(f"plan/{made.seed}/healers")
    shapes = tuple(shape for shape in made.shapes if shape.ack_quorum >= 2) or (
        QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2),
    )
    others = tuple(fault for fault in made.faults if fault not in ("lose_bookie", "reborn"))
    return replace(
        made,
        bookies=max(rng.choice([4, 5]), *(shape.ensemble_size + 1 for shape in shapes)),
        shapes=shapes,
        writers=min(made.writers, 2),
        recoverers=1,
        tailers=1,
        repairers=0,
        healers=rng.choice([1, 1, 2]),
        faults=(*rng.sample(others, min(len(others), 3)), "crash", "lose_bookie"),
        chaos_s=rng.uniform(8, 20),
        fault_pause_s=rng.choice([0.7, 1.5]),
        down_max=rng.choice([1, 2]),
    )


def _with_ended_writes(made: WorldPlan) -> WorldPlan:
    """The same world, where sessions end with writes that were done and that nobody answers: with autorecovery, or
    where ledgers are deleted and brought back."""
    made = _with_healers(made) if made.seed % 2 else _with_undeletion(made)
    others = tuple(fault for fault in made.faults if fault not in ("lost_reply", "outage"))
    return replace(made, faults=(*others, *ENDED_WRITES, *ENDED_WRITES))


def _with_rollback(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where no bookie is lost; then the metadata are put back (F10), while writers are at
    work: every second seed from :data:`FIRST_WITH_ROLLBACK` on."""
    rng = Random(f"plan/{made.seed}/rollback")
    chaos_s = rng.uniform(6, 12)
    return replace(
        made,
        faults=tuple(fault for fault in made.faults if fault not in ("lose_bookie", "reborn")) or ("crash",),
        chaos_s=chaos_s,
        ledger_bursts=rng.choice([20, 60, 200]),
        append_pause_s=0.15,
        rollback_after_s=rng.uniform(0.2, 0.95) * chaos_s,
        bookie={"garbage_grace_s": 1.0},
    )


def _with_compaction(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where disks have work for compaction, which runs again and again."""
    rng = Random(f"plan/{made.seed}/compaction")
    storage = {
        **made.storage,
        "entry_log_bytes": rng.choice([8, 16, 32]) * KIB,
        "checkpoint_bytes": rng.choice([4, 8, 16]) * KIB,
        "log_sync_bytes": rng.choice([0, 2, 16]) * KIB,
        "minor_compaction_ratio": 1.0,
        "minor_compaction_interval_s": rng.choice([0.1, 0.5]),
        "compaction_bytes_per_s": rng.choice([0, 64, 256]) * KIB,
    }
    return replace(
        made, storage=storage, litter=True, writers=min(made.writers, 2), tailers=1, chaos_s=rng.uniform(6, 14)
    )


def _with_scrub(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where autorecovery runs and entry logs of one bookie rot while it serves. Bookies read
    all of their files again and again. One bookie's copies at most are hurt (F3): none is lost besides."""
    rng = Random(f"plan/{made.seed}/scrub")
    made = _with_healers(made)
    others = tuple(fault for fault in made.faults if fault not in ("lose_bookie", "crash"))
    storage = {
        **made.storage,
        "entry_log_bytes": rng.choice([8, 32]) * KIB,
        "checkpoint_bytes": rng.choice([4, 16]) * KIB,
        "scrub_period_s": rng.choice([2.0, 5.0]),
        "scrub_bytes_per_s": rng.choice([0, 4096]) * KIB,
    }
    return replace(
        made,
        storage=storage,
        faults=(*rng.sample(others, min(len(others), 2)), "crash", "crash", *DECAY, *DECAY, *DECAY),
        fault_pause_s=0.5,
    )


def _with_ledger_logs(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where each ledger has a log of its own on every bookie; of every two worlds one has work
    for collections and compaction as well."""
    rng = Random(f"plan/{made.seed}/ledger logs")
    if made.seed % 2:
        made = _with_compaction(made)
    storage = {
        **made.storage,
        "entry_log_per_ledger": True,
        "ledger_buffer_bytes": rng.choice([4, 16, 64]) * KIB,
        "open_logs_max": rng.choice([1, 2, 100]),
        "log_idle_s": rng.choice([0.0, 1.0, 4.0]),
    }
    client = replace(made.client, close_advice=True)
    return replace(made, storage=storage, client=client, tailers=1)


def _with_collection(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where bookies look for deleted ledgers again and again, and sessions see the past: what
    they miss there is not deleted. No bookie is lost."""
    rng = Random(f"plan/{made.seed}/collection")
    others = tuple(fault for fault in made.faults if fault not in ("lose_bookie", "reborn", "fsync_error"))
    return replace(
        made,
        writers=min(made.writers, 2),
        tailers=1,
        faults=(*rng.sample(others, min(len(others), 3)), "crash", "lag", "lag", "lag"),
        chaos_s=rng.uniform(6, 14),
        fault_pause_s=rng.choice([0.3, 0.7]),
        ledger_bursts=rng.choice([5, 20]),
        bookie={"garbage_interval_s": rng.choice([0.2, 0.5]), "garbage_grace_s": rng.choice([0.5, 1.5])},
    )


def _with_volumes(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where autorecovery runs and every bookie has several ledger directories. Those of one
    bookie fail, fill up, are emptied and come back (F3: no copies are lost besides); those of all fill up, are drained
    and added."""
    rng = Random(f"plan/{made.seed}/volumes")
    made = _with_healers(made)
    others = tuple(fault for fault in made.faults if fault not in ("lose_bookie", "crash", "fsync_error", "disk_full"))
    kinds = tuple(kind for kind in VOLUME_FAULTS if rng.random() < 0.7) or VOLUME_FAULTS
    return replace(
        made,
        directories=rng.choice([2, 2, 3]),
        faults=(*rng.sample(others, min(len(others), 1)), "crash", "crash", *kinds, *kinds),
        ledger_bursts=rng.choice([3, 10, 30]),
        fault_pause_s=rng.choice([0.3, 0.7]),
    )


def _with_undeletion(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where ledgers are deleted and brought back, while bookies look for deleted ledgers again
    and again. In every second one entry logs are compacted; in every fourth bookies have several ledger directories,
    which are drained and added."""
    rng = Random(f"plan/{made.seed}/undeletion")
    storage = made.storage
    if made.seed % 2:
        storage = _with_compaction(made).storage
    made = _with_collection(made)
    bookie = {**made.bookie, "garbage_shrink_max": 1.0}
    made = replace(made, storage=storage, bookie=bookie, undeleters=1, chaos_s=rng.uniform(8, 14))
    if made.seed % 4 != 2:
        return made
    others = tuple(fault for fault in made.faults if fault != "disk_full")
    return replace(made, directories=rng.choice([2, 3]), faults=(*others, "drain", "grow"))


def _with_encryption(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where entries are encrypted, writers often choose the ids and repeat what they do not
    know the outcome of with other bytes, and there is little room for what is pending. Of every two worlds one has its
    metadata put back to an older state, while writers are at work."""
    rng = Random(f"plan/{made.seed}/encryption")
    if made.seed % 2 == 0:
        made = _with_rollback(made)
    keys = CallableKeys(lambda: KeyRing({"sim": bytes(32)}), "the world")
    client = replace(
        made.client,
        encryption=EncryptionConfig(provider=keys, cipher=rng.choice(["aes-256-gcm", "chacha20-poly1305"])),
        pending_entries_max=rng.choice([1, 2, 4]),
    )
    return replace(made, client=client, writers=2, tailers=1, chaos_s=min(made.chaos_s, 10.0), deferred=False)


def _with_racks(made: WorldPlan) -> WorldPlan:
    """The same world, shorter, where autorecovery runs, bookies stand in racks and one of them is lost: copies of an
    entry are kept apart. Of every two worlds one enforces it."""
    rng = Random(f"plan/{made.seed}/racks")
    made = _with_healers(made)
    client = replace(made.client, placement="rack", racks_enforced=made.seed % 2 == 1)
    ensemble, drawn = max(shape.ensemble_size for shape in made.shapes), rng.choice([2, 3, 3])
    odd = any(shape.ensemble_size % 2 and shape.write_quorum == 2 for shape in made.shapes)
    racks = 3 if odd else drawn  # neighbours in a ring of odd length cannot all be in different ones of two
    return replace(made, client=client, racks=racks, bookies=max(6, ensemble + 2), chaos_s=min(made.chaos_s, 12))


def _client(rng: Random) -> ClientConfig:
    """Less patient than one in production: what takes long is waited for in virtual time only, but often."""
    return ClientConfig(
        delete_grace_s=0,
        close_advice=False,
        placement="random",
        protocol=rng.choice(["v3", "v3", "v2"]),
        connect_timeout_ms=500,
        request_timeout_ms=1_500,
        add_timeout_ms=rng.choice([2_000, 5_000]),
        bookie_stall_ms=rng.choice([200, 500]),
        bookie_trail_bytes_max=rng.choice([4, 32 * KIB]) * KIB,
        pending_entries_max=rng.choice([8, 64, 10_000]),
        speculative_read_ms=rng.choice([20, 200]),
        batch_read_bytes=rng.choice([1, 64]) * KIB,
        long_poll_ms=1_000,
        metadata_poll_ms=1_000,
        bookies_poll_ms=3_000,
        metadata_timeout_ms=3_000,
        quarantine_ms=rng.choice([500, 5_000]),
        reconnect_delay_max_ms=500,
        recovery_attempts=2,
        recovery_retry_ms=200,
    )
