from __future__ import annotations

import pytest

from bookkeeper.errors import ConfigError
from segments.gateway.config import GrpcGatewayConfig, GrpcLimits


def test_values_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="connections_max must be more than 0"):
        GrpcLimits(connections_max=0)
    with pytest.raises(ConfigError, match="lease_s"):
        GrpcGatewayConfig(lease_s=0)
    with pytest.raises(ConfigError, match="drain_s must be at least 0"):
        GrpcGatewayConfig(drain_s=-1)
    with pytest.raises(ConfigError, match="probe_s"):
        GrpcGatewayConfig(probe_s=3.0, unreachable_s=2.0)
