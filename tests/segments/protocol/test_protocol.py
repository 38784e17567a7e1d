"""The protocol grows, and loses nothing: clients that were made before go on.

``python -m tests.segments.protocol.test_protocol`` adds what is new to the list; its diff is reviewed like code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from segments.protocol import segments_pb2 as pb

LIST = Path(__file__).with_name("protocol.txt")


def lines() -> list[str]:
    """Each call, field and value of the protocol, with what is on the wire of it."""
    found = [line for message in pb.DESCRIPTOR.message_types_by_name.values() for line in _of_message(message)]
    found += [line for enum in pb.DESCRIPTOR.enum_types_by_name.values() for line in _of_enum(enum)]
    for service in pb.DESCRIPTOR.services_by_name.values():
        for method in service.methods:
            streams = [" stream" if each else "" for each in (method.client_streaming, method.server_streaming)]
            ends = method.input_type.full_name, method.output_type.full_name
            found.append(f"{method.full_name}({ends[0]}{streams[0]}) -> {ends[1]}{streams[1]}")
    return sorted(found)


def _of_message(message: Any) -> Iterator[str]:
    for field in message.fields:
        kind = field.message_type or field.enum_type
        name = field.type if kind is None else kind.full_name
        many = " repeated" if field.is_repeated else " optional" if field.has_presence else ""
        yield f"{field.full_name} = {field.number}: {name}{many}"
    for inner in message.nested_types:
        yield from _of_message(inner)
    for enum in message.enum_types:
        yield from _of_enum(enum)


def _of_enum(enum: Any) -> Iterator[str]:
    for value in enum.values:
        yield f"{enum.full_name}.{value.name} = {value.number}"


def test_nothing_of_the_protocol_is_gone_or_means_something_else() -> None:
    assert sorted(set(LIST.read_text().splitlines()) - set(lines())) == []


def test_the_list_has_all_of_it() -> None:
    assert lines() == LIST.read_text().splitlines(), "python -m tests.segments.protocol.test_protocol"


if __name__ == "__main__":
    LIST.write_text("".join(f"{line}\n" for line in sorted({*LIST.read_text().splitlines(), *lines()})))
