"""Real gateways, and a client that is not ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from segments.gateway.command import grpc as command
from tests.segments.gateway.processes import gateway, make_stub, run_foreign, standalone

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

APPENDS = """
import sys
import grpc
import segments_pb2 as pb
import segments_pb2_grpc as stubs
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

channel = grpc.insecure_channel(sys.argv[1])
streams, append = stubs.StreamsStub(channel), stubs.AppendStub(channel)
made = streams.Create(pb.CreateStreamRequest(stream="orders", settings=pb.Settings(values={"ack_quorum": "1"})))
assert made.settings.values["ack_quorum"] == "1", made

state = append.OpenProducer(pb.OpenProducerRequest(stream="orders", producer="p"))
assert state.epoch == 1 and not state.HasField("last_sequence"), state

def batch(number, epoch=1):
    ref = pb.ProducerRef(name="p", epoch=epoch, sequence=4 * number)
    return pb.AppendRequest(stream="orders", values=[b"%d" % number] * 4, producer=ref)

one = append.Append(batch(0)).result
assert (one.position.segment, one.last.slot, one.duplicate) == (1, 3, False), one
replies = list(append.AppendStream(batch(number) for number in range(5)))
assert replies[0].window.records > 0
assert replies[1].result.duplicate and replies[1].result.position == one.position, replies[1]
again = [append.Append(batch(number)).result for number in range(5)]
assert [each.position for each in again] == [each.result.position for each in replies[1:]]
assert all(each.duplicate for each in again)

def refused(call, request):
    try:
        call(request)
    except grpc.RpcError as error:
        detail = pb.SegmentError.FromString(dict(error.trailing_metadata())["segments-error-bin"])
        return error.code().name, detail.code, detail.outcome
    raise AssertionError("not refused")

assert refused(streams.Get, pb.GetStreamRequest(stream="none")) == ("NOT_FOUND", "stream-not-found", 1)
assert refused(streams.Create, pb.CreateStreamRequest(stream="orders"))[0] == "ALREADY_EXISTS"
assert refused(append.Append, batch(9))[:2] == ("FAILED_PRECONDITION", "sequence-gap")
append.OpenProducer(pb.OpenProducerRequest(stream="orders", producer="p"))
assert refused(append.Append, batch(5))[:2] == ("FAILED_PRECONDITION", "producer-fenced")
tail = again[-1].last
conditional = pb.AppendRequest(stream="orders", values=[b"x"], expected_tail=one.position)
assert refused(append.Append, conditional)[:2] == ("FAILED_PRECONDITION", "tail-moved")
conditional.expected_tail.CopyFrom(tail)
assert append.Append(conditional).result.position.entry > tail.entry
damaged = pb.AppendRequest(stream="orders", values=[b"x"], crc32c=1)
assert refused(append.Append, damaged) == ("DATA_LOSS", "entry-corrupt", 1)
assert refused(append.Append, pb.AppendRequest(stream="orders"))[0] == "INVALID_ARGUMENT"
outcome = append.GetOutcome(pb.GetOutcomeRequest(stream="orders", producer="p", sequence=19))
assert outcome.outcome == pb.OUTCOME_APPLIED and outcome.result.position == tail, outcome
outcome = append.GetOutcome(pb.GetOutcomeRequest(stream="orders", producer="p", sequence=20))
assert outcome.outcome == pb.OUTCOME_NOT_APPLIED, outcome
owner = streams.GetOwner(pb.GetOwnerRequest(stream="orders"))
assert owner.here and owner.address == sys.argv[1], owner
assert [each.stream for each in streams.List(pb.ListStreamsRequest(prefix="or"))] == ["orders"]

health = health_pb2_grpc.HealthStub(channel)
for name in ("", "segments.v1.Streams", "segments.v1.Append", "segments.v1.Read", "segments.v1.Cursors"):
    assert health.Check(health_pb2.HealthCheckRequest(service=name)).status == 1, name
listed = set(ProtoReflectionDescriptorDatabase(channel).get_services())
assert {"segments.v1." + name for name in ("Streams", "Append", "Read", "Segments", "Cursors", "Operations")} < listed
assert {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} < listed
print("done")
"""

READS = """
import sys
import threading
import queue
import grpc
import segments_pb2 as pb
import segments_pb2_grpc as stubs

channel = grpc.insecure_channel(sys.argv[1])
streams, append, read = stubs.StreamsStub(channel), stubs.AppendStub(channel), stubs.ReadStub(channel)
streams.Create(pb.CreateStreamRequest(stream="log"))
for number in range(20):
    append.Append(pb.AppendRequest(stream="log", values=[b"%d" % (5 * number + each) for each in range(5)]))

replies = list(read.Read(pb.ReadRequest(stream="log", max_records=7)))
assert [r.record.value for reply in replies for r in reply.batch.records] == [b"%d" % n for n in range(7)], replies
assert replies[-1].HasField("end_of_stream")
assert read.Count(pb.CountRequest(stream="log")).records == 100
place = read.Find(pb.FindRequest(stream="log", seek=pb.Seek(seq_no=42))).position

class Tail:
    def __init__(self, **opened):
        self.said = queue.SimpleQueue()
        self.said.put(pb.TailRequest(open=pb.TailRequest.Open(stream="log", progress_ms=100, **opened)))
        self.call = read.Tail(iter(self.said.get, None))
        self.token = b""
    def give(self, records, size=1 << 20):
        self.said.put(pb.TailRequest(credits=pb.Credits(records=records, bytes=size)))
    def records(self, count):
        found = []
        for reply in self.call:
            self.token = reply.resume_token
            found += [r.record.value for r in reply.batch.records]
            if len(found) >= count:
                return found
    def progress(self):
        for reply in self.call:
            self.token = reply.resume_token
            assert reply.HasField("progress"), reply
            return reply.progress

tail = Tail()
assert not tail.progress().caught_up       # no credits, no records: only progress
tail.give(3)
assert tail.records(3) == [b"0", b"1", b"2"]
tail.progress()                            # the credits are used up
tail.give(1, 1)
assert tail.records(1) == [b"3"]           # one byte lets one record pass
tail.progress()
tail.give(6)
assert tail.records(6) == [b"%d" % n for n in range(4, 10)]
token = tail.token
tail.call.cancel()

again = Tail(resume_token=token)
again.give(90)
assert again.records(90) == [b"%d" % n for n in range(10, 100)]
again.progress()
again.give(5)
while not again.progress().caught_up:
    pass
append.Append(pb.AppendRequest(stream="log", values=[b"new"]))
assert again.records(1) == [b"new"]
again.said.put(pb.TailRequest(seek=pb.Seek(seq_no=98)))
for reply in again.call:
    if reply.generation == 1 and reply.HasField("batch"):
        break
assert reply.batch.records[0].record.value == b"98", reply
try:
    other = streams.Create(pb.CreateStreamRequest(stream="other"))
    next(read.Tail(iter([pb.TailRequest(open=pb.TailRequest.Open(stream="other", resume_token=token))])))
    raise AssertionError("a token of another stream was taken")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
streams.Seal(pb.SealRequest(stream="log"))
again.give(100)
for reply in again.call:
    last = reply
assert last.HasField("end_of_stream"), last
print("done")
"""

REDIRECTED = """
import sys, time
import grpc
import segments_pb2 as pb
import segments_pb2_grpc as stubs

first, second = (stubs.AppendStub(grpc.insecure_channel(address)) for address in sys.argv[1:3])
stubs.StreamsStub(grpc.insecure_channel(sys.argv[1])).Create(pb.CreateStreamRequest(stream="s", exist_ok=True))

def batch(number):
    return pb.AppendRequest(stream="s", values=[b"v"], producer=pb.ProducerRef(name="p", sequence=number))

first.Append(batch(0))
for call in (lambda: second.Append(batch(1)), lambda: list(second.AppendStream(iter([batch(1)])))):
    try:
        call()
        raise AssertionError("not redirected")
    except grpc.RpcError as error:
        detail = pb.SegmentError.FromString(dict(error.trailing_metadata())["segments-error-bin"])
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        assert (detail.code, detail.owner, detail.retryable) == ("gateway-redirect", sys.argv[1], True), detail
print("redirected", flush=True)
"""

TAKEN_OVER = """
import sys, time
import grpc
import segments_pb2 as pb
import segments_pb2_grpc as stubs

second = stubs.AppendStub(grpc.insecure_channel(sys.argv[1]))
deadline = time.monotonic() + 60
first = pb.AppendRequest(stream="s", values=[b"v"], producer=pb.ProducerRef(name="p", sequence=0))
while True:
    try:
        again = second.Append(first)
        break
    except grpc.RpcError as error:
        detail = pb.SegmentError.FromString(dict(error.trailing_metadata())["segments-error-bin"])
        assert detail.retryable and time.monotonic() < deadline, detail
        time.sleep(0.1)
assert again.result.duplicate, again
assert not second.Append(
    pb.AppendRequest(stream="s", values=[b"w"], producer=pb.ProducerRef(name="p", sequence=1))
).result.duplicate
print("taken over")
"""


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster") / "bk") as uri:
        yield uri


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("grpc_tools")
    place = tmp_path_factory.mktemp("foreign") / "stub"
    make_stub(place)
    return place


def test_a_client_that_is_not_ours_appends(metadata: str, stub: Path, tmp_path: Path) -> None:
    """SEG-116, SEG-117, SEG-120, SEG-122: a stub generated from the protocol; unary and streaming appends give equal
    results, a duplicate has the original position, an older epoch is refused; health and reflection name all
    services."""
    with gateway(metadata, tmp_path / "gateway.log", "--reflection") as served:
        assert run_foreign(APPENDS, stub, served.address) == "done\n"
        assert served.end() == 0
        assert "Traceback" not in served.log


def test_a_client_that_is_not_ours_reads_with_credits(metadata: str, stub: Path, tmp_path: Path) -> None:
    """SEG-121: a tail honours flow control and resumes from a token."""
    with gateway(metadata, tmp_path / "gateway.log") as served:
        assert run_foreign(READS, stub, served.address) == "done\n"
        assert "Traceback" not in served.log


def test_the_other_gateway_redirects_and_takes_over_when_the_owner_is_killed(
    metadata: str, stub: Path, tmp_path: Path
) -> None:
    """SEG-120: redirect to the owner, retry on not-ready; SEG-118: nothing twice after the owner's death."""
    with (
        gateway(metadata, tmp_path / "first.log") as first,
        gateway(metadata, tmp_path / "second.log") as second,
    ):
        assert run_foreign(REDIRECTED, stub, first.address, second.address) == "redirected\n"
        first.kill()
        assert run_foreign(TAKEN_OVER, stub, second.address) == "taken over\n"
        assert "Traceback" not in second.log


def test_wrong_options_are_refused_in_words() -> None:
    runner = CliRunner()
    shown = runner.invoke(command, ["--help"]).output
    for word in ("grpc://HOST:PORT", "--token-file", "--lease-s", "--http", "reflection", "SIGTERM"):
        assert word in shown
    optional = ["--tls-cert", "c", "--tls-key", "k", "--client-ca", "a", "--client-certificates", "optional"]
    refused = runner.invoke(command, ["--metadata", "mem:x", *optional, "--token-file", "t"])
    assert "gRPC asks every client for a certificate, or none" in refused.output
    refused = runner.invoke(command, ["--metadata", "mem:x", "--listen", "0.0.0.0:1"])
    assert "nothing would be encrypted" in refused.output


def test_a_taken_port_is_one_sentence_without_lines_of_grpc_itself(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        said = subprocess.run(
            [sys.executable, "-m", "bookkeeper.admin", "gateway", "grpc", "--metadata", "memory:", "--listen", where],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"},
            check=False,
        )
    assert (said.returncode, said.stdout) == (1, "")
    (text,) = [line for line in said.stderr.splitlines() if not line.startswith("starting: ")]
    assert text.startswith(f"bk: cannot listen at {where}: another program listens there")
