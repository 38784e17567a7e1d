from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from segments.protocol import segments_pb2 as pb
from segments.protocol.methods import METHODS, SERVICES

ROOT = Path(__file__).resolve().parents[3]
PROTO = "segments/protocol/segments.proto"


@pytest.mark.skipif(importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed")
def test_the_generated_messages_are_those_of_the_protocol(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, PROTO], cwd=ROOT, check=True)
    for name in ("segments_pb2.py", "segments_pb2.pyi"):
        made = (tmp_path / "segments/protocol" / name).read_text()
        assert made == (ROOT / "segments/protocol" / name).read_text(), f"{name} is not fresh: make proto"


def test_every_call_of_the_protocol_is_there() -> None:
    declared = {f"segments.v1.{name}" for name in pb.DESCRIPTOR.services_by_name}
    assert set(SERVICES) == declared
    append = METHODS["Append.AppendStream"]
    assert append.path == "/segments.v1.Append/AppendStream"
    assert (append.streams_requests, append.streams_replies) == (True, True)
    assert append.parse_request(pb.AppendRequest(stream="s").SerializeToString()).stream == "s"
    assert append.reply.FromString(b"") == pb.AppendReply()
    assert (METHODS["Read.Read"].streams_requests, METHODS["Read.Read"].streams_replies) == (False, True)
    assert len(METHODS) == sum(len(service.methods) for service in pb.DESCRIPTOR.services_by_name.values())
