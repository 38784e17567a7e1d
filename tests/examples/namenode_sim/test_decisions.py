"""Requests become edits that fit, or are refused as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.namenode_sim.decisions import ClientRequest, decide
from examples.namenode_sim.errors import (
    InodeExistsError,
    InodeKindError,
    InodeMissingError,
    NamespaceError,
    OpenFileError,
    RequestError,
)
from examples.namenode_sim.image import listing, read_image, write_image
from examples.namenode_sim.namespace import HdfsNamespace
from journal_manager.hdfs import decode_hdfs_op, encode_hdfs_op
from journal_manager.hdfs.hdfs_ops import AddOp, MkdirOp, RenameOp
from tests.examples_of import examples

ANN, BOB = b"a" * 16, b"b" * 16


class Node:
    """A namespace and a clock that ticks with each request."""

    def __init__(self) -> None:
        self.namespace = HdfsNamespace()
        self.now = 1000

    def ask(self, verb: str, client: bytes = ANN, call: int = 1, **arguments: Any) -> list[str]:
        self.now += 1
        ops = decide(self.namespace, ClientRequest(verb, arguments, client, call), self.now)
        for op in ops:
            again = decode_hdfs_op(*encode_hdfs_op(op))
            assert again == op
            self.namespace.apply(self.namespace.txid + 1, again)
        return [type(op).__name__.removesuffix("Op") for op in ops]

    def paths(self) -> list[str]:
        return [row["path"] for row in listing(self.namespace)]


def test_a_small_file_is_made_of_the_edits_of_a_real_name_node() -> None:
    node = Node()
    assert node.ask("create", path="/d/e/.f.tmp") == ["Mkdir", "Mkdir", "Add"]
    assert node.ask("add_block", path="/d/e/.f.tmp") == ["AllocateBlockId", "SetGenstampV2", "AddBlock"]
    assert node.ask("add_block", path="/d/e/.f.tmp", length=128) == ["AllocateBlockId", "SetGenstampV2", "AddBlock"]
    assert node.ask("close", path="/d/e/.f.tmp", length=5) == ["Close"]
    assert node.ask("rename", source="/d/e/.f.tmp", target="/d/e/f") == ["Rename"]
    file = node.namespace.file("/d/e/f")
    assert ([block.length for block in file.blocks], file.client) == ([128, 5], None)
    assert node.paths() == ["/", "/d", "/d/e", "/d/e/f"]


def test_what_is_as_it_should_be_needs_no_edit() -> None:
    node = Node()
    node.ask("mkdirs", path="/d/e")
    assert node.ask("mkdirs", path="/d/e") == node.ask("mkdirs", path="/") == []
    node.ask("create", path="/f")
    node.ask("add_block", path="/f")
    node.ask("close", path="/f", length=5)
    assert node.ask("close", path="/f", length=5) == node.ask("truncate", path="/f", length=5) == []


def test_only_who_has_a_file_open_writes_it() -> None:
    node = Node()
    node.ask("create", path="/f")
    for verb, arguments in (("close", {"length": 0}), ("add_block", {}), ("create", {"overwrite": True})):
        with pytest.raises(OpenFileError, match="open for writing by"):
            node.ask(verb, BOB, path="/f", **arguments)
    with pytest.raises(OpenFileError):
        node.ask("append", BOB, path="/f")
    node.ask("close", path="/f", length=0)
    with pytest.raises(OpenFileError):
        node.ask("close", BOB, path="/f", length=1) if node.ask("append", path="/f") else None
    assert node.namespace.file("/f").client == f"client_{ANN.hex()}"


def test_a_file_is_cut() -> None:
    node = Node()
    node.ask("create", path="/f")
    node.ask("add_block", path="/f")
    node.ask("add_block", path="/f", length=100)
    node.ask("close", path="/f", length=50)
    assert node.ask("truncate", path="/f", length=120) == ["SetGenstampV2", "Truncate"]
    assert node.ask("close", path="/f", length=20) == ["Close"]
    assert node.ask("truncate", path="/f", length=100) == ["Truncate"]
    assert node.ask("truncate", path="/f", length=0) == ["Truncate"]
    assert node.namespace.file("/f").blocks == ()
    with pytest.raises(OpenFileError, match="cannot be cut to 1"):
        node.ask("truncate", path="/f", length=1)


def test_refusals() -> None:
    node = Node()
    node.ask("create", path="/d/f")
    node.ask("create", path="/g")
    cases: list[tuple[type[NamespaceError], str, dict[str, Any]]] = [
        (InodeExistsError, "create", {"path": "/g"}),
        (InodeExistsError, "mkdirs", {"path": "/g"}),
        (InodeKindError, "mkdirs", {"path": "/g/x"}),
        (InodeKindError, "create", {"path": "/g/x/y"}),
        (InodeExistsError, "rename", {"source": "/g", "target": "/d/f"}),
        (InodeKindError, "rename", {"source": "/g", "target": "/d", "overwrite": True}),
        (InodeKindError, "rename", {"source": "/d", "target": "/d/e"}),
        (InodeKindError, "rename", {"source": "/", "target": "/e"}),
        (InodeMissingError, "rename", {"source": "/x", "target": "/y"}),
        (InodeMissingError, "rename", {"source": "/g", "target": "/x/y"}),
        (InodeExistsError, "delete", {"path": "/d"}),
        (InodeMissingError, "delete", {"path": "/x"}),
        (InodeKindError, "delete", {"path": "/", "recursive": True}),
        (RequestError, "set_permission", {"path": "/g", "mode": 0o7777}),
        (InodeKindError, "set_quota", {"path": "/g", "names": 1}),
        (InodeExistsError, "symlink", {"path": "/g", "target": "/x"}),
        (RequestError, "concat", {"target": "/d/f", "sources": ["/d/f"]}),
        (RequestError, "delete", {"path": "relative"}),
        (RequestError, "delete", {"path": "/a//b"}),
        (RequestError, "delete", {"path": "/a/../b"}),
        (RequestError, "mkdirs", {"path": "/" + "a" * 9000}),
        (RequestError, "delete", {"path": 5}),
        (RequestError, "delete", {"road": "/a"}),
        (RequestError, "explode", {}),
    ]
    node.ask("close", path="/d/f", length=0)
    before = b"".join(write_image(node.namespace))
    for kind, verb, arguments in cases:
        with pytest.raises(kind):
            node.ask(verb, **arguments)
    assert b"".join(write_image(node.namespace)) == before


def test_what_must_not_be_done_twice_leaves_its_id() -> None:
    node = Node()
    for call, (verb, arguments) in enumerate(
        [
            ("create", {"path": "/f"}),
            ("add_block", {"path": "/f"}),
            ("rename", {"source": "/f", "target": "/g"}),
            ("symlink", {"path": "/l", "target": "/g"}),
            ("delete", {"path": "/l"}),
        ]
    ):
        node.ask(verb, BOB, call, **arguments)
        assert node.namespace.requests.done(BOB, call) == node.namespace.txid
    node.ask("close", BOB, path="/g", length=1)
    node.ask("create", BOB, 10, path="/h")
    node.ask("close", BOB, path="/h", length=0)
    node.ask("concat", BOB, 11, target="/g", sources=["/h"])
    node.ask("append", BOB, 12, path="/g")
    assert node.namespace.requests.done(BOB, 11) and node.namespace.requests.done(BOB, 12)


def test_new_inodes_inherit_the_group_and_belong_to_who_asked() -> None:
    namespace = HdfsNamespace()
    for number, op in enumerate(decide(namespace, ClientRequest("mkdirs", {"path": "/d"}), 5), 1):
        namespace.apply(number, op)
    namespace.directory("/d").group = "analysts"
    made = decide(namespace, ClientRequest("create", {"path": "/d/e/f"}, ANN, 1, user="eve"), 6)
    assert [type(op) for op in made] == [MkdirOp, AddOp]
    assert all(op.permissions.owner == "eve" and op.permissions.group == "analysts" for op in made)  # type: ignore[union-attr]
    assert [op.inode_id for op in made] == [16387, 16388]  # type: ignore[union-attr]


def test_an_overwriting_rename_says_so_in_its_edit() -> None:
    node = Node()
    for path in ("/f", "/g"):
        node.ask("create", path=path)
        node.ask("close", path=path, length=0)
    [op] = decide(node.namespace, ClientRequest("rename", {"source": "/f", "target": "/g", "overwrite": True}), 9)
    assert isinstance(op, RenameOp)
    assert op.options == b"\x01"


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=0, max_size=3).map(lambda names: "/" + "/".join(names))


class AnyRequests(RuleBasedStateMachine):
    """Whatever is asked for in whatever order: edits that were decided on always fit."""

    def __init__(self) -> None:
        super().__init__()
        self.node = Node()
        self.call = 0

    def ask(self, verb: str, client: bytes, **arguments: Any) -> None:
        self.call += 1
        try:
            self.node.ask(verb, client, self.call, **arguments)
        except NamespaceError:
            pass

    @rule(verb=st.sampled_from(["mkdirs", "create", "add_block", "append", "set_owner"]), path=PATHS, ann=st.booleans())
    def by_path(self, verb: str, path: str, ann: bool) -> None:
        self.ask(verb, ANN if ann else BOB, path=path)

    @rule(path=PATHS, length=st.integers(-1, 3), verb=st.sampled_from(["close", "truncate", "add_block"]))
    def with_length(self, path: str, length: int, verb: str) -> None:
        self.ask(verb, ANN, path=path, length=length)

    @rule(path=PATHS, recursive=st.booleans())
    def delete(self, path: str, recursive: bool) -> None:
        self.ask("delete", ANN, path=path, recursive=recursive)

    @rule(old=PATHS, new=PATHS, overwrite=st.booleans())
    def rename(self, old: str, new: str, overwrite: bool) -> None:
        self.ask("rename", ANN, source=old, target=new, overwrite=overwrite)

    @rule(into=PATHS, sources=st.lists(PATHS, max_size=2))
    def concat(self, into: str, sources: list[str]) -> None:
        self.ask("concat", ANN, target=into, sources=sources)

    @rule(path=PATHS)
    def symlink(self, path: str) -> None:
        self.ask("symlink", ANN, path=path, target="/a")

    @rule(path=PATHS)
    def overwrite(self, path: str) -> None:
        self.ask("create", ANN, path=path, overwrite=True)

    @invariant()
    def an_image_is_the_namespace(self) -> None:
        image = b"".join(write_image(self.node.namespace))
        assert b"".join(write_image(read_image([image]))) == image


TestAnyRequests = AnyRequests.TestCase
TestAnyRequests.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
