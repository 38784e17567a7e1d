"""What every place does is in test_places."""

from __future__ import annotations

import pytest

from bookkeeper.errors import ConfigError

pytest.importorskip("pyarrow")

from spark_wal.checkpoint_copy.arrow_store import ArrowStore


def test_s3a_is_s3() -> None:
    place = ArrowStore("s3a://bucket/a/b/?region=eu-west-1&endpoint_override=127.0.0.1:1&scheme=http")
    assert place.uri == "s3a://bucket/a/b"
    assert place._root == "bucket/a/b"
    assert place._is_s3


@pytest.mark.parametrize("name", ["a%20b", "a b", "100%"])
def test_a_percent_sign_is_one_as_for_spark(name: str) -> None:
    """The cause: pyarrow decodes addresses, and Hadoop does not, so that a copy lay where Spark does not look."""
    assert ArrowStore(f"s3a://bucket/{name}?region=eu-west-1")._root == f"bucket/{name}"


def test_what_pyarrow_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match="gopher"):
        ArrowStore("gopher://host/a")


@pytest.mark.rule("X58")
def test_credentials_in_an_address_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="environment") as refused:
        ArrowStore("s3://name:hunter2@bucket/a")
    assert "hunter2" not in str(refused.value)
