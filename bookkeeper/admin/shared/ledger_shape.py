"""The options of verbs that make a ledger: its bookies, its quorums, its digest."""

from __future__ import annotations

import click

from bookkeeper.admin.shared.options import F
from bookkeeper.client.config import ACK_QUORUM, ENSEMBLE, WRITE_QUORUM
from bookkeeper.option_types import WholeNumber

_OPTIONS = (
    click.option(
        "--ensemble",
        type=WholeNumber(1),
        metavar="N",
        default=ENSEMBLE,
        show_default=True,
        help="Bookies that share the ledger.",
    ),
    click.option(
        "--write-quorum",
        type=WholeNumber(1),
        metavar="N",
        default=WRITE_QUORUM,
        show_default=True,
        help="Copies of each entry.",
    ),
    click.option(
        "--ack-quorum",
        type=WholeNumber(1),
        metavar="N",
        default=ACK_QUORUM,
        show_default=True,
        help="Copies that must be durable before an entry counts as written.",
    ),
    click.option(
        "--digest",
        type=click.Choice(["crc32c", "crc32", "hmac", "dummy"]),
        default="crc32c",
        show_default=True,
        help="How an entry is checked when it is read; dummy: not at all.",
    ),
)


def ledger_shape_options(function: F) -> F:
    """``--ensemble``, ``--write-quorum``, ``--ack-quorum`` and ``--digest``, in this order in the help."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
