"""XML and JSON lines are those of Hadoop's own tool."""

from __future__ import annotations

import hashlib

import pytest

from journal_manager.hdfs.hdfs_ops import ConcatDeleteOp, SetReplicationOp, SetXAttrOp
from journal_manager.hdfs.oev import XML_TAIL, json_line, mangled, xml_head, xml_record
from journal_manager.hdfs.op_values import PathXAttrs, XAttr
from tests.journal_manager.hdfs import decoded, vector

SHOWN_BY_HDFS = "13072423d91e4388d0fdbfd47936f47edd64dd42dcf0148cbed4ed0b17b79010"
"""SHA-256 of what ``hdfs oev -p xml`` of Hadoop 3.4.2 shows of edits_1-534.bin."""


def xml_of(name: str) -> bytes:
    records = "".join(xml_record(txid, op) for txid, op in decoded(vector(f"{name}.bin")))
    return (xml_head(-67) + records + XML_TAIL).encode()


@pytest.mark.parametrize("name", ["every_op", "unusual"])
def test_the_xml_is_hadoops(name: str) -> None:
    assert xml_of(name) == vector(f"{name}.xml")


def test_the_xml_of_the_name_nodes_log_is_hadoops() -> None:
    assert hashlib.sha256(xml_of("edits_1-534")).hexdigest() == SHOWN_BY_HDFS


def test_the_json_lines_are_those_made_of_hadoops_xml() -> None:
    lines = "".join(json_line(txid, op) for txid, op in decoded(vector("edits_1-534.bin")))
    assert lines.encode() == vector("edits.jsonl")


def test_json_has_lists_for_what_may_be_there_more_than_once() -> None:
    once = SetXAttrOp(PathXAttrs("/d", (XAttr(0, "n"),)))
    assert json_line(1, once) == (
        '{"txid":1,"op":"SET_XATTR","SRC":"/d","XATTR":[{"NAMESPACE":"USER","NAME":"n"}],'
        '"RPC_CLIENTID":"","RPC_CALLID":"-2"}\n'
    )
    assert '"SOURCES":"",' in json_line(1, ConcatDeleteOp("/t", (), 1))
    assert '"PATH":"/größe\\\\0001;"' in json_line(1, SetReplicationOp("/größe\x01", 1))


def test_what_xml_does_not_allow_is_spelled_out() -> None:
    assert mangled("a\\b\x00\ud800\uffff") == "a\\005c;b\\0000;\\d800;\\ffff;"
    assert mangled("tab\t, line\n, return\r, 😀") == "tab\t, line\n, return\r, 😀"
