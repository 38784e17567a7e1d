from __future__ import annotations

from segments.errors import GatewayRedirectError, StreamNotReadyError, StreamUnavailableError
from segments.remote.gateway_address import GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels


async def test_a_client_learns_who_owns_a_stream_and_forgets_it_with_the_gateway() -> None:
    """SEG-120: redirect to the owner."""
    channels = GatewayChannels(["a:1", "b:1"], GatewayCredentials())
    assert channels.address_for("s") == "a:1"
    assert not channels.note_failure("s", "a:1", GatewayRedirectError("there", owner="c:1"))
    assert (channels.address_for("s"), channels.address_for("t")) == ("c:1", "a:1")
    assert channels.note_failure("s", "c:1", StreamNotReadyError("not now"))
    assert channels.address_for("s") == "c:1"
    assert channels.note_failure("s", "c:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "a:1"
    assert channels.note_failure("s", "a:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "b:1"
    await channels.close()


async def test_calls_that_fail_together_go_on_to_the_same_gateway() -> None:
    """Each failure moved all calls on: two producers of a gateway that was killed asked it again and again."""
    channels = GatewayChannels(["a:1", "b:1"], GatewayCredentials())
    for _ in range(2):
        assert channels.note_failure("s", "a:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "b:1"
    assert not channels.note_failure("s", "b:1", GatewayRedirectError("there", owner="c:1"))
    assert channels.note_failure("s", "a:1", StreamUnavailableError("dead"))
    assert channels.address_for("s") == "c:1", "what another call has learned since stays"
    await channels.close()
