"""The options of verbs that make a ledger."""

from __future__ import annotations

import click
import pytest

from benchmarks.ledger_load import add
from bookkeeper.admin.ledger.append import append

NAMES = ["ensemble", "write_quorum", "ack_quorum", "digest"]


@pytest.mark.parametrize("verb", [add, append])
def test_verbs_that_make_a_ledger_have_its_shape_with_the_clients_defaults(verb: click.Command) -> None:
    shape = [option for option in verb.params if option.name in NAMES]
    assert [option.name for option in shape] == NAMES, "in the order of the help"
    assert [option.default for option in shape] == [3, 3, 2, "crc32c"]
