"""For each alarm series in which it fires, and series in which it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Series = Mapping[str, str]
"""Series -> values in promtool's notation, one a minute."""

_B: Final = 'job="bookies", instance="b{}", cluster="main"'
_R: Final = 'job="autorecovery", instance="a1", cluster="main"'
_S: Final = 'job="spark-gateways", instance="g1", cluster="main"'
_G: Final = 'job="stream-gateways", instance="g2", cluster="main"'


def _of(metric: str, labels: str, values: str) -> dict[str, str]:
    return {f"{metric}{{{labels}}}": values}


def _bookies(metric: str, *values: str) -> dict[str, str]:
    """A metric of b1, b2, …"""
    return {f"{metric}{{{_B.format(number)}}}": each for number, each in enumerate(values, 1)}


_ADDS: Final = f'{_B.format(1)}, success="true", quantile="0.99"'
_FAILED: Final = f'{_B.format(1)}, success="false"'

LONG: Final[Mapping[str, int]] = {
    "BookieStartsAgain": 60,
    "DamageNotRepaired": 400,
    "CompactionFails": 120,
    "LedgersLackCopies": 150,
    "OpenToEverybody": 90,
}
"""Alarm -> the minute in which it is looked at, where that is not the thirtieth."""

STORIES: Final[Mapping[str, tuple[Series, Series]]] = {
    "BookieGone": (_bookies("up", "0x500", "1x500"), _bookies("up", "1x500", "1x500")),
    "ManyBookiesGone": (
        _bookies("up", "0x500", "0x500", "1x500", "1x500"),
        _bookies("up", "0x500", "1x500", "1x500", "1x500"),
    ),
    "BookieStartsAgain": (
        _bookies("process_start_time_seconds", "1+10x500"),
        _bookies("process_start_time_seconds", "1x40 2x10 3x20"),
    ),
    "BookieNotRegistered": (_bookies("bookie_registered", "0x500"), _bookies("bookie_registered", "1x500")),
    "BookieReadOnly": (_bookies("bookie_SERVER_STATUS", "0x500", "1x500"), _bookies("bookie_SERVER_STATUS", "-1x500")),
    "NoBookieWritable": (
        _bookies("bookie_SERVER_STATUS", "0x500", "-1x500"),
        _bookies("bookie_SERVER_STATUS", "0x500", "1x500"),
    ),
    "DiskFillsUp": (
        {**_bookies("bookie_directory_free_bytes", "9x500"), **_bookies("bookie_directory_total_bytes", "100x500")},
        {**_bookies("bookie_directory_free_bytes", "11x500"), **_bookies("bookie_directory_total_bytes", "100x500")},
    ),
    "DirectoryLost": (_bookies("bookie_lost_directories", "1x500"), _bookies("bookie_lost_directories", "0x500")),
    "CheckpointFails": (
        _bookies("bookie_failing_checkpoints", "1x500"),
        _bookies("bookie_failing_checkpoints", "0x26 1x9"),
    ),
    "DiskDamaged": (
        _bookies("bookie_storage_scrub_damages", "0x15 1x20"),
        _bookies("bookie_storage_scrub_damages", "3x500"),
    ),
    "DamageNotRepaired": (
        _bookies("bookie_damaged_ledgers", "4x500"),
        _bookies("bookie_damaged_ledgers", "0x100 4x400"),
    ),
    "GarbageStays": (
        _bookies("bookie_garbage_pass_age_seconds", "7000+60x500"),
        _bookies("bookie_garbage_pass_age_seconds", "900x500"),
    ),
    "CompactionFails": (
        _bookies("bookie_storage_compactions_failed", "0x30 1x200"),
        _bookies("bookie_storage_compactions_failed", "1x500"),
    ),
    "AddsRefused": (_bookies("bookie_adds_refused_total", "0+1x500"), _bookies("bookie_adds_refused_total", "5x500")),
    "AddsSlow": (
        _of("bookkeeper_server_ADD_ENTRY_REQUEST", _ADDS, "1500x500"),
        _of("bookkeeper_server_ADD_ENTRY_REQUEST", _ADDS, "500x500"),
    ),
    "JournalSlow": (
        _of("bookie_journal_JOURNAL_SYNC", _ADDS, "600x500"),
        _of("bookie_journal_JOURNAL_SYNC", _ADDS, "NaN"),
    ),
    "ReadsFail": (
        _of("bookkeeper_server_READ_ENTRY_REQUEST_count", _FAILED, "0+600x500"),
        _of("bookkeeper_server_READ_ENTRY_REQUEST_count", _FAILED, "0+30x500"),
    ),
    "NoAuditor": (
        {**_bookies("bookie_registered", "1x500"), **_of("autorecovery_is_auditor", _R, "0x500")},
        {**_bookies("bookie_registered", "1x500"), **_bookies("bookie_autorecovery_is_auditor", "0x500", "1x500")},
    ),
    "BookieLost": (_of("autorecovery_lost_bookies", _R, "1x500"), _of("autorecovery_lost_bookies", _R, "0x500")),
    "LedgersLackCopies": (
        _of("autorecovery_ledgers_waiting", _R, "7x500"),
        _of("autorecovery_ledgers_waiting", _R, "7x80 0x10 7x99"),
    ),
    "LedgerStuck": (
        _bookies("bookie_autorecovery_ledgers_stuck", "1x500"),
        _of("autorecovery_ledgers_stuck", _R, "0x500"),
    ),
    "GatewayGone": (_of("up", _S, "0x500"), _of("up", _G, "1x500")),
    "GatewayDoesNotServe": (
        _of("bookkeeper_streams_gateway_serving", _G, "0x500"),
        _of("bookkeeper_streams_gateway_serving", _G, "1x500"),
    ),
    "GatewayRequestsFail": (
        {**_of("gateway_requests_total", _S, "0+120x500"), **_of("gateway_requests_refused_total", _S, "0+100x500")},
        {**_of("gateway_requests_total", _S, "0+120x500"), **_of("gateway_requests_refused_total", _S, "0+20x500")},
    ),
    "CertificateEnds": (
        _of("gateway_certificate_ends_soon", _S, "1x500"),
        _bookies("bookie_tls_certificate_ends_soon", "0x500"),
    ),
    "AuditLogFails": (_bookies("bookie_audit_failing", "1x500"), _bookies("bookie_audit_failing", "0x500")),
    "PolicyUnreadable": (
        _of("bookkeeper_streams_gateway_access_policy_unreadable", _G, "1x500"),
        _of("bookkeeper_streams_gateway_access_policy_unreadable", _G, "0x500"),
    ),
    "OpenToEverybody": (_bookies("bookie_insecure", "1x500"), _bookies("bookie_insecure", "0x500")),
    "DescriptorsRunOut": (
        {**_bookies("process_open_fds", "900x500"), **_bookies("process_max_fds", "1000x500")},
        {**_bookies("process_open_fds", "500x500"), **_bookies("process_max_fds", "1000x500")},
    ),
}
