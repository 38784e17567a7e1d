"""The order book: whoever replays the orders has the same book, and every order counts once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples import order_book
from examples.order_book import Book
from segments.position import Position
from segments.record import NO_HEADERS, StoredRecord
from tests.segments.clusters import a_namespace


def order(seq_no: int, side: str, price: int, quantity: int) -> StoredRecord:
    value = {"trader": f"t{seq_no}", "symbol": "ACME", "side": side, "price": price, "quantity": quantity}
    position = Position(1, seq_no, 0)
    return StoredRecord(position, seq_no, json.dumps(value).encode(), None, None, NO_HEADERS, None, 0, None)


def test_the_best_price_trades_first_and_the_rest_rests() -> None:
    book = Book()
    assert book.apply(order(0, "sell", 101, 5)) == []
    assert book.apply(order(1, "sell", 100, 5)) == []
    trades = book.apply(order(2, "buy", 101, 7))
    assert [(each["price"], each["quantity"], each["seller"]) for each in trades] == [(100, 5, "t1"), (101, 2, "t0")]
    assert book.depth() == {("ACME", "sell"): [(101, 3)]}


async def test_the_replayed_book_equals_the_live_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with a_namespace(tmp_path) as namespace:
        live, replayed, trades = await order_book.run(namespace)
    assert live.depth() == replayed.depth() and live.seen == order_book.TRADERS * order_book.ORDERS_EACH
    told = capsys.readouterr().out
    assert "1000 orders in" in told and "equals the live one: yes" in told and trades > 100
