"""Every field of every request of the protocol has a decision about its rights (X12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from bookkeeper.access import Grant, Mode, Policy, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights, Needs
from segments.errors import StreamAccessError
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import RIGHTS, VALUES, RequestRights, needs_of
from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS


def undecided(message: Descriptor, rights: RequestRights, prefix: str = "") -> Iterator[str]:
    """The fields of a request about which nothing is decided."""
    for field in message.fields:
        path = prefix + field.name
        if path in rights.names or path in rights.flags:
            continue
        if path in rights.values:
            yield from undecided_values(field, path)
        elif field.message_type is None:
            yield path
        else:
            yield from undecided(field.message_type, rights, f"{path}.")


def undecided_values(field: FieldDescriptor, path: str) -> Iterator[str]:
    inside = field.message_type
    if inside is None or inside.GetOptions().map_entry:
        return
    for each in inside.fields:
        if each.name in VALUES.get(inside.name, ()):
            yield from undecided_values(each, f"{path}.{each.name}")
        else:
            yield f"{path}.{each.name} of {inside.name}"


@pytest.mark.rule("X12")
def test_every_field_of_every_request_has_a_decision() -> None:
    """Cause: a field that names a stream and that nobody looks at is a way around all rights: an administrative route
    of another system asked for the proxy's own rights, so every client could delete."""
    assert set(RIGHTS) == set(METHODS)
    found = {key: [*undecided(method.request.DESCRIPTOR, RIGHTS[key])] for key, method in METHODS.items()}
    assert {key: fields for key, fields in found.items() if fields} == {}


def test_a_field_without_a_decision_would_be_noticed() -> None:
    """The check itself: it looks into messages in fields, and into those inside of them."""
    publish = METHODS["Append.Publish"].request.DESCRIPTOR
    found = [*undecided(publish, RequestRights({"stream": ()}, values=("key",)))]
    assert found[:3] == ["rows.staging", "rows.stream_id", "rows.records"]
    assert "rows.ledger.last.segment" in found
    assert found[-1] == "rows.entries"
    tail = METHODS["Read.Tail"].request.DESCRIPTOR
    assert "open.stream" in [*undecided(tail, RequestRights(values=("credits", "seek")))]


def test_no_decision_is_about_a_field_that_is_not_there() -> None:
    for key, rights in RIGHTS.items():
        for path in (*rights.names, *rights.flags, *rights.values):
            message = METHODS[key].request.DESCRIPTOR
            for name in path.split("."):
                assert name in message.fields_by_name, f"{key}: {path}"
                message = message.fields_by_name[name].message_type
    for name, fields in VALUES.items():
        assert set(fields) == set(pb.DESCRIPTOR.message_types_by_name[name].fields_by_name), name


def filled(key: str, path: str) -> Any:
    """A request in which one field names ``theirs``; every other field that must name something names ``mine``."""
    request = METHODS[key].request()
    for each in RIGHTS[key].names:
        inside, *rest = each.split(".")
        owner = getattr(request, inside) if rest else request
        setattr(owner, rest[0] if rest else inside, "theirs" if each == path else "mine")
    return request


def ask(key: str, request: Any, *granted: Right) -> None:
    """Ask for what a request needs, with every right on ``mine`` and these on ``theirs``."""
    grants = (
        Grant(Subject.parse("a"), frozenset(Right), Resource.parse("streams:mine")),
        *(Grant(Subject.parse("a"), frozenset({right}), Resource.parse("streams:theirs")) for right in granted),
    )
    call = GrpcCall(Caller("a"), permissions=CallerRights(lambda: Policy(Mode.ENFORCE, grants)))
    for stream, needs in needs_of(RIGHTS[key], request):
        call.require(stream, needs)


def least(needs: Needs) -> set[Right]:
    return {rights[0] for rights in needs}


@pytest.mark.rule("X12")
@pytest.mark.parametrize("key", sorted(key for key in RIGHTS if RIGHTS[key].names))
def test_each_name_in_each_field_needs_its_rights_and_no_others(key: str) -> None:
    for path, needs in RIGHTS[key].names.items():
        request = filled(key, path)
        ask(key, request, *least(needs))
        for missing in least(needs):
            wrong = set(Right) - {right for rights in needs if missing in rights for right in rights}
            with pytest.raises(StreamAccessError, match="may not use stream theirs"):
                ask(key, request, *wrong)


@pytest.mark.rule("X12")
@pytest.mark.parametrize(
    ("key", "flag", "enough", "more"),
    [
        ("Streams.Delete", "force", Right.DELETE, Right.ADMINISTER),
        ("Streams.Check", "repair", Right.READ, Right.RECOVER),
    ],
)
def test_what_overrules_others_needs_more(key: str, flag: str, enough: Right, more: Right) -> None:
    assert [each for each, rights in RIGHTS.items() if rights.flags] == ["Streams.Delete", "Streams.Check"]
    request = filled(key, "stream")
    ask(key, request, enough)
    setattr(request, flag, True)
    with pytest.raises(StreamAccessError, match=f"no right to {more}|no right to recover"):
        ask(key, request, enough)
    ask(key, request, enough, more)


def test_no_name_is_every_stream_unless_the_call_finds_it_elsewhere() -> None:
    assert [stream for stream, _ in needs_of(RIGHTS["Streams.Check"], pb.CheckRequest())] == [""]
    with pytest.raises(StreamAccessError, match="a may not look at all streams"):
        ask("Streams.Check", pb.CheckRequest(), *Right)
    for key in ("Append.AppendStream", "Streams.Import", "Read.Tail"):
        assert [*needs_of(RIGHTS[key], METHODS[key].request())] == []
        assert [stream for stream, _ in needs_of(RIGHTS[key], filled(key, "x"))] == ["mine"]
