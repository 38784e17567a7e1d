"""Options are known, or refused by name."""

from __future__ import annotations

import pytest

from segments.seek import AtSeqNo
from spark_wal.data_source.options import (
    READ_OPTIONS,
    RETRY_S,
    STREAM_OPTIONS,
    WRITE_OPTIONS,
    DataSourceOptionError,
    read_settings,
    write_settings,
)

URI = {"metadata": "sqlite:///tmp/x"}
ORDERS = {**URI, "stream": "orders"}


def test_defaults() -> None:
    found = read_settings(ORDERS, streaming=True)
    assert (found.start, found.stop, found.value_format, found.permissive) == ("earliest", "latest", "raw", False)
    assert (found.retry_s, found.count_gaps, found.max_rows, found.hold_name) == (RETRY_S, False, None, None)


def test_names_are_found_in_any_case_as_spark_hands_them_on() -> None:
    given = {**ORDERS, "startingposition": "seq:7", "MINPARTITIONS": "3", "ongap": "count", "mode": "PERMISSIVE"}
    assert read_settings({**ORDERS, "RETRYSECONDS": "0.5"}, streaming=True).retry_s == 0.5
    found = read_settings(given, streaming=False)
    assert (found.start_seek, found.min_partitions, found.count_gaps, found.permissive) == (AtSeqNo(7), 3, True, True)


def test_what_is_read_is_said_in_messages() -> None:
    assert read_settings({**URI, "ledger": "17"}, streaming=False).what == "ledger 17"
    assert read_settings({**URI, "journal": "edits"}, streaming=False).what == "journal edits"
    assert read_settings({**URI, "streams": "app/*"}, streaming=False).what == "streams app/*"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": "a"}, "option metadata"),
        (URI, "none is given"),
        ({**ORDERS, "ledger": "1"}, "stream and ledger are given"),
        ({**ORDERS, "startingPositon": "earliest"}, "did you mean startingPosition"),
        ({**ORDERS, "zzzzzzzz": "1"}, "there are metadata, stream,"),
        ({**ORDERS, "path": "a"}, "there is no path"),
        ({**ORDERS, "option.stream": "orders", "provider": "bookkeeper"}, "use CREATE TEMPORARY VIEW"),
        ({**ORDERS, "maxRowsPerTrigger": "7"}, "is for a stream that is read by readStream"),
        ({**ORDERS, "minPartitions": "0"}, "whole number of at least 1"),
        ({**ORDERS, "minPartitions": "1.5"}, "whole number"),
        ({**ORDERS, "retrySeconds": "nan"}, "number of seconds"),
        ({**ORDERS, "retrySeconds": "soon"}, "number of seconds"),
        ({**ORDERS, "startingPosition": "somewhere"}, "startingPosition"),
        ({**ORDERS, "startingPosition": ""}, "is empty"),
        ({**ORDERS, "valueFormat": "avro"}, "one of raw, json, arrow"),
        ({**ORDERS, "onGap": "skip"}, "one of fail, count"),
        ({**ORDERS, "passwordFile": "/x"}, "passwordFile is for a ledger"),
        ({**URI, "streams": "app/"}, "star at its end"),
        ({**URI, "ledger": "-1"}, "whole number"),
        ({**URI, "ledger": "1", "startingPosition": "-90s"}, "is a number or earliest"),
        ({"metadata": "embedded:///x", "stream": "a"}, "start bk standalone"),
        ({"metadata": "grpc://x:1", "stream": "a"}, "tasks read bookies themselves"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(options: dict[str, str], said: str) -> None:
    with pytest.raises(DataSourceOptionError, match=said):
        read_settings(options, streaming=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({**URI, "streams": "app/*"}, "readStream reads one stream"),
        ({**URI, "ledger": "1"}, "readStream reads one stream"),
        ({**ORDERS, "endingPosition": "latest"}, "has no end"),
        ({**ORDERS, "maxRowsPerTrigger": "1", "maxBytesPerTrigger": "1"}, "one limit"),
    ],
)
def test_what_a_query_cannot_have(options: dict[str, str], said: str) -> None:
    with pytest.raises(DataSourceOptionError, match=said):
        read_settings(options, streaming=True)


def test_an_option_of_the_other_side_is_told_as_such() -> None:
    with pytest.raises(DataSourceOptionError, match="txnAppId"):
        read_settings({**ORDERS, "txnAppId": "a"}, streaming=False)
    with pytest.raises(DataSourceOptionError, match="startingPosition is for reading"):
        write_settings({**ORDERS, "startingPosition": "earliest"}, streaming=True)


def test_names_differ_by_more_than_case() -> None:
    for names in ((*READ_OPTIONS, *STREAM_OPTIONS), WRITE_OPTIONS):
        assert len({name.lower() for name in names}) == len(names)
