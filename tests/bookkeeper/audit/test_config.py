from __future__ import annotations

import pytest

from bookkeeper.audit import AuditConfig
from bookkeeper.errors import ConfigError
from bookkeeper.settings import structure


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"to": ""}, "audit.to is empty"),
        ({"to": "audit.log"}, "absolute path, or log"),
        ({"to": "/x", "file_bytes": 10}, "audit.file_bytes"),
        ({"to": "/x", "queue_bytes": 10}, "audit.queue_bytes"),
        ({"to": "/x", "files_kept": -1}, "audit.files_kept"),
        ({"to": "/x", "peer_lines_per_s": 0.0}, "audit.peer_lines_per_s"),
        ({"to": "/x", "peer_lines_at_once": 0}, "audit.peer_lines_at_once"),
        ({"file": "/x"}, "file"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        structure(AuditConfig, options)


def test_without_a_word_nothing_is_noted_and_a_path_or_the_log_may_be_named() -> None:
    assert AuditConfig().to is None
    assert structure(AuditConfig, {"to": "/var/log/bookie/audit"}).to == "/var/log/bookie/audit"
    assert structure(AuditConfig, {"to": "log"}).to == "log"
