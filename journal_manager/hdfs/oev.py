"""Edits as ``hdfs oev`` prints them: XML, or JSON lines made of that XML (pure).

The JSON line of an edit is ``txid``, ``op``, and the fields in the order of the XML. Every value is text. What may be
there more than once (blocks, entries, extended attributes) is a list, also if it is there once.
"""

from __future__ import annotations

import json
from typing import Any, Final

from journal_manager.hdfs.field_kinds import Element
from journal_manager.hdfs.hdfs_ops import HdfsOp
from journal_manager.hdfs.op_codec import elements, op_name

_LISTS: Final = frozenset({"BLOCK", "SOURCE", "XATTR", "ENTRY"})
_ESCAPED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP: Final = frozenset(_ESCAPED)


def xml_head(layout_version: int) -> str:
    """What stands before the first edit."""
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        f"<EDITS>\n  <EDITS_VERSION>{layout_version}</EDITS_VERSION>\n"
    )


XML_TAIL: Final = "</EDITS>\n"
"""What stands behind the last edit."""


def xml_record(txid: int, op: HdfsOp) -> str:
    """One edit as an XML element of several lines."""
    data: list[Element] = [("TXID", str(txid)), *elements(op)]
    return _xml(("RECORD", [("OPCODE", f"OP_{op_name(op)}"), ("DATA", data)]), "  ")


def _xml(element: Element, indent: str) -> str:
    tag, inside = element
    if not inside:
        return f"{indent}<{tag}/>\n"
    if isinstance(inside, str):
        return f"{indent}<{tag}>{_escaped(mangled(inside))}</{tag}>\n"
    return f"{indent}<{tag}>\n{''.join(_xml(child, indent + '  ') for child in inside)}{indent}</{tag}>\n"


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable() and not _MARKUP.intersection(text):
        return text
    return "".join(_ESCAPED.get(c) or (f"&#{ord(c)};" if _is_reference(c) else c) for c in text)


def _is_reference(character: str) -> bool:
    """Whether the Java library that writes the XML writes this character as a number."""
    return character == "\r" or "\x7f" <= character <= "\x9f" or character > "\uffff"


def mangled(text: str) -> str:
    r"""The text as HDFS puts it into XML: ``\005c;`` stands for a backslash, and so on for what XML does not allow."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(f"\\{ord(c):04x};" if _is_mangled(c) else c for c in text)


def _is_mangled(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character == "\\" or character < " " or "\ud800" <= character <= "\udfff" or character in "\ufffe\uffff"


def json_line(txid: int, op: HdfsOp) -> str:
    """One edit as one line of JSON, with the end of the line."""
    record = {"txid": txid, "op": op_name(op), **_members(elements(op))}
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n"


def _members(inside: list[Element]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for tag, content in inside:
        value = mangled(content) if isinstance(content, str) else (_members(content) or "")
        if tag in _LISTS or tag in members:
            former = members.setdefault(tag, [])
            if not isinstance(former, list):
                members[tag] = former = [former]
            former.append(value)
        else:
            members[tag] = value
    return members
