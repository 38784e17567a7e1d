from __future__ import annotations

from spark_wal.webhdfs.http.head_size import HEAD_MAX, HeadSize


def came(head: HeadSize, data: bytes, *, in_body: bool = False, is_handled: bool = False) -> bool:
    return head.came(data, in_body=in_body, is_handled=is_handled)


def test_a_head_is_counted_to_its_end_and_its_body_is_not() -> None:
    head = HeadSize()
    assert not came(head, b"x" * (HEAD_MAX - 4))
    assert not came(head, b"\r\n\r\n" + b"body" * HEAD_MAX)
    assert not came(head, b"body" * HEAD_MAX), "between the head's end and its handler"
    head.taken_up()
    assert not came(head, b"body" * HEAD_MAX, in_body=True, is_handled=True)
    assert came(head, b"x" * (HEAD_MAX + 1))


def test_the_end_of_a_head_may_come_in_pieces() -> None:
    for cut in range(1, 4):
        head = HeadSize()
        assert not came(head, b"x" * (HEAD_MAX - 4) + b"\r\n\r\n"[:cut])
        assert not came(head, b"\r\n\r\n"[cut:] + b"body")
        assert not came(head, b"body" * HEAD_MAX)


def test_a_head_of_many_pieces_is_too_large_in_all() -> None:
    head, pieces = HeadSize(), 0
    while not came(head, b"field: 12345\r\n"):
        pieces += 1
    assert pieces == HEAD_MAX // 14


def test_what_is_sent_ahead_is_counted_until_nothing_is_handled() -> None:
    head = HeadSize()
    head.taken_up()
    assert not came(head, b"GET / HTTP/1.1\r\n\r\n" * 100, is_handled=True)
    head.taken_up()
    assert came(head, b"x" * HEAD_MAX, is_handled=True)
    assert not came(head, b"GET / HTTP/1.1\r\n\r\n")
    head.taken_up()
    assert not came(head, b"x" * HEAD_MAX, is_handled=True)
