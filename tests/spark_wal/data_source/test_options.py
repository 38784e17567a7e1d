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
        ({**ORDERS, "minPartitions": "9" * 5_000}, "at most 2 to the power of 62, not '9999"),
        ({**ORDERS, "minPartitions": "٣"}, "whole number"),
        ({**URI, "ledger": "1", "startingPosition": "9" * 5_000}, "is a number or earliest"),
        ({**ORDERS, "mode": "DROPMALFORMED"}, "one of FAILFAST, PERMISSIVE, not 'DROPMALFORMED'"),
        ({**ORDERS, "createStream": "true"}, "option createStream is for writing"),
        ({**ORDERS, "compression": "lz4"}, "option compression is for writing"),
        ({**URI, "stream": "<b>"}, "option stream: a stream cannot be named '<b>'"),
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
        ({**ORDERS, "maxRowsPerTrigger": "-5"}, "option maxRowsPerTrigger is a whole number of at least 1"),
        ({**ORDERS, "holdName": "a b"}, "option holdName: a hold cannot be named 'a b'"),
        ({**ORDERS, "cursor": "<c>"}, "option cursor: a cursor cannot be named '<c>'"),
        ({**ORDERS, "takeOver": "true"}, "option takeOver is for writing"),
    ],
)
def test_what_a_query_cannot_have(options: dict[str, str], said: str) -> None:
    with pytest.raises(DataSourceOptionError, match=said):
        read_settings(options, streaming=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({**URI, "stream": "a//b"}, "option stream: a stream cannot be named 'a//b'"),
        ({**ORDERS, "guarantee": "atMostOnce"}, "one of exactlyOnce, atLeastOnce, not 'atMostOnce'"),
        ({**ORDERS, "compression": "gzip"}, "one of none, lz4, zstd, not 'gzip'"),
        ({**ORDERS, "compression": ""}, "option compression is empty"),
        (
            {**ORDERS, "metadata": "grpc://g:1", "compression": "lz4"},
            "a gateway compresses as the stream's settings say",
        ),
        ({**ORDERS, "metadata": "grpc://g:1", "guarantee": "atLeastOnce", "compression": "lz4"}, "is for exactlyOnce"),
        ({**ORDERS, "txnStart": "4"}, "txnStart is the number with which a query goes on"),
        ({**ORDERS, "txnAppId": "a", "txnVersion": "-1"}, "option txnVersion is a whole number of at least 0"),
        ({**ORDERS, "maxRowsPerTrigger": "1"}, "option maxRowsPerTrigger is for a stream that is read by readStream"),
    ],
)
def test_what_a_single_write_cannot_have(options: dict[str, str], said: str) -> None:
    with pytest.raises(DataSourceOptionError, match=said):
        write_settings(options, streaming=False)


def test_words_count_in_any_case_and_what_is_not_said_is_left_to_the_stream() -> None:
    found = write_settings({**ORDERS, "compression": "LZ4", "guarantee": "EXACTLYONCE"}, streaming=True)
    assert (found.compression, found.at_least_once) == ("lz4", False)
    plain = write_settings(ORDERS, streaming=False)
    assert (plain.compression, plain.value_format, plain.start) == (None, None, None)
    again = {**ORDERS, "txnAppId": "a", "txnVersion": "1", "txnStart": "4"}
    assert (
        write_settings(again, streaming=False).start
        == write_settings({**ORDERS, "txnStart": "4"}, streaming=True).start
    )


def test_an_option_of_the_other_side_is_told_as_such() -> None:
    with pytest.raises(DataSourceOptionError, match="txnAppId"):
        read_settings({**ORDERS, "txnAppId": "a"}, streaming=False)
    with pytest.raises(DataSourceOptionError, match="startingPosition is for reading"):
        write_settings({**ORDERS, "startingPosition": "earliest"}, streaming=True)


def test_names_differ_by_more_than_case() -> None:
    for names in ((*READ_OPTIONS, *STREAM_OPTIONS), WRITE_OPTIONS):
        assert len({name.lower() for name in names}) == len(names)
