"""Tests mirror code: every module has its test module, or stands here with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_CODEC = "a part of the codec: test_adds, test_reads, test_records, test_same ask its front door, in both codecs"
_CHECKPOINTS = "a part of the verbs of checkpoints: test_checkpoint_verbs runs them"
_EDITS = "a part of the codec of edits: test_frames and test_bodies ask both codecs"
_LONE = "a part of the codec of lone entries: test_lone asks both codecs"
_CONTRACT = "a part of the contract that is shipped: test_testing breaks its promises, every backend keeps them"
_FIELDS = "a part of the kinds of fields: test_field_kinds reads and writes each kind, and what HDFS never writes"
_MESSAGES = "every message in both dialects: test_round_trip; the bytes of official programs: test_vectors"

WITHOUT: dict[str, str] = {
    "bookkeeper/codec/native/adds.py": _CODEC,
    "bookkeeper/codec/native/reads.py": _CODEC,
    "bookkeeper/codec/native/records.py": _CODEC,
    "bookkeeper/codec/pure/adds.py": _CODEC,
    "bookkeeper/codec/pure/checksums.py": _CODEC,
    "bookkeeper/codec/pure/frames.py": _CODEC,
    "bookkeeper/codec/pure/reads.py": _CODEC,
    "bookkeeper/codec/pure/records.py": _CODEC,
    "bookkeeper/codec/shapes.py": _CODEC,
    "bookkeeper/ledger/write/confirm_checks.py": "what test_writer looks at after every step",
    "bookkeeper/seams.py": "protocols only; what keeps them is tested in real/ and testing/",
    "bookkeeper/storage/base/results.py": "data without behaviour: what the engine hands out",
    "bookkeeper/storage/journal/entry_log_layout.py": "protocols only; shared_log/ and ledger_logs/ keep them",
    "bookkeeper/storage/start/inventory.py": "data without behaviour: what a start has found",
    "bookkeeper/wire/requests.py": _MESSAGES,
    "bookkeeper/wire/v2.py": _MESSAGES,
    "bookkeeper/wire/v3.py": _MESSAGES,
    "journal_manager/codec/native.py": _EDITS,
    "journal_manager/codec/pure.py": _EDITS,
    "journal_manager/codec/shapes.py": _EDITS,
    "segments/codec/native.py": _LONE,
    "segments/codec/pure.py": _LONE,
    "journal_manager/hdfs/attribute_kinds.py": _FIELDS,
    "journal_manager/hdfs/inode_kinds.py": _FIELDS,
    "journal_manager/hdfs/op_values.py": "data without behaviour: the values in the ops, in test_field_kinds",
    "journal_manager/hdfs/protobuf_fields.py": _FIELDS,
    "journal_manager/hdfs/record_kinds.py": _FIELDS,
    "journal_manager/replicas/replica_config.py": "settings alone: what each does is in test_replicated_program",
    "journal_manager/replicas/status.py": "data without behaviour: what a replica says about itself",
    "journal_manager/testing/discards.py": _CONTRACT,
    "journal_manager/testing/edit_logs.py": _CONTRACT,
    "journal_manager/testing/journal.py": _CONTRACT,
    "journal_manager/testing/life_cycle.py": _CONTRACT,
    "journal_manager/testing/reading.py": _CONTRACT,
    "journal_manager/testing/snapshots.py": _CONTRACT,
    "journal_manager/testing/upgrades.py": _CONTRACT,
    "journal_manager/testing/writing.py": _CONTRACT,
    "journal_manager/hdfs/hdfs_ops.py": "data without behaviour: every op is read and written in test_op_codec",
    "segments/write/output/changed_settings.py": "a part of the roll: test_stories changes a stream's settings",
    "spark_wal/checkpoint_options.py": _CHECKPOINTS,
    "spark_wal/rollback_verb.py": _CHECKPOINTS,
    "spark_wal/webhdfs/files/tree_answers.py": "data without behaviour: what the tree answers",
}
"""Module -> why it has no test module of its own."""


def _modules(package: str) -> list[Path]:
    return [
        path.relative_to(ROOT)
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py") and not path.stem.endswith("_pb2")
    ]


@pytest.mark.parametrize("package", ["bookkeeper", "journal_manager", "segments", "spark_wal"])
def test_every_module_has_its_test_module(package: str) -> None:
    missing = [
        str(module)
        for module in _modules(package)
        if str(module) not in WITHOUT and not (ROOT / "tests" / module.parent / f"test_{module.name}").exists()
    ]
    assert missing == []


def test_the_exceptions_are_still_there_and_still_exceptions() -> None:
    for module in WITHOUT:
        assert (ROOT / module).exists(), f"{module} is gone: take it off the list"
        mirror = ROOT / "tests" / Path(module).parent / f"test_{Path(module).name}"
        assert not mirror.exists(), f"{module} has a test module now: take it off the list"
