"""An order book that is nothing but its stream: every order is a record, and the book is what replaying them gives.

    python -m examples.order_book                       # a cluster in this process, in a temporary directory
    python -m examples.order_book sqlite:///tmp/bk/metadata.db

Traders submit orders through idempotent producers, so an order that is sent twice counts once. The exchange follows the
stream with a cursor, matches orders, and appends its trades to a second stream with the order's number as transaction
id. It is stopped in the middle, and goes on where it was. At the end a new book is replayed from the beginning, and
another one as of the middle: whoever replays the same orders has the same book.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from bisect import insort
from dataclasses import dataclass, field

from bookkeeper.amounts import counted
from segments import AtSeqNo, Reader, Record, RollPolicy, StoredRecord, Stream, StreamConfig, StreamNamespace, connect

TRADERS, ORDERS_EACH, SYMBOLS = 4, 250, ("ACME", "HOOLI")
ROLL_OFTEN = StreamConfig(roll=RollPolicy(max_records=200, min_age_s=0))


@dataclass(order=True)
class Resting:
    """An order in the book. Better prices come first, and among equal prices the earlier order."""

    rank: tuple[int, int]
    trader: str = field(compare=False)
    price: int = field(compare=False)
    left: int = field(compare=False)


@dataclass
class Book:
    """The orders that rest, by symbol and side. Deterministic: the same orders give the same book."""

    sides: dict[tuple[str, str], list[Resting]] = field(default_factory=dict)
    seen: int = 0
    """How many orders came; the number of the next one."""

    def apply(self, record: StoredRecord) -> list[dict[str, object]]:
        """Take one order; return its trades."""
        order = json.loads(record.value)
        symbol, side, price, left = order["symbol"], order["side"], order["price"], order["quantity"]
        buys = side == "buy"
        others = self.sides.setdefault((symbol, "sell" if buys else "buy"), [])
        trades: list[dict[str, object]] = []
        while left and others and (others[0].price <= price if buys else others[0].price >= price):
            best = others[0]
            traded = min(left, best.left)
            left, best.left = left - traded, best.left - traded
            pair = (order["trader"], best.trader) if buys else (best.trader, order["trader"])
            trades.append(
                {"symbol": symbol, "price": best.price, "quantity": traded, "buyer": pair[0], "seller": pair[1]}
            )
            if not best.left:
                others.pop(0)
        if left:
            rank = (-price if buys else price, record.seq_no)
            insort(self.sides.setdefault((symbol, side), []), Resting(rank, order["trader"], price, left))
        self.seen = record.seq_no + 1
        return trades

    def depth(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """(price, quantity) of what rests, best first."""
        return {key: [(each.price, each.left) for each in side] for key, side in sorted(self.sides.items()) if side}


async def trade(stream: Stream, name: str, chance: random.Random) -> None:
    """Submit orders. Every fifth is sent twice, as after a lost reply; the second time it is a duplicate."""
    async with stream.producer(name) as producer:
        for n in range(ORDERS_EACH):
            symbol = chance.choice(SYMBOLS)
            order = {
                "trader": name,
                "symbol": symbol,
                "side": chance.choice(("buy", "sell")),
                "price": chance.randint(95, 105),
                "quantity": chance.randint(1, 9),
            }
            record = Record(json.dumps(order).encode(), key=symbol.encode())
            first = await producer.append(record, seq=n)
            if n % 5 == 0:
                again = await producer.append(record, seq=n)
                assert again.duplicate and again.position == first.position


async def follow(reader: Reader, book: Book, stop_at: int) -> list[Record]:
    """Apply orders until the book has seen ``stop_at``; return the trades, numbered by their orders."""
    trades: list[Record] = []
    while book.seen < stop_at:
        for record in await reader.next_batch(stop_at - book.seen):
            trades += [Record(json.dumps(each).encode(), txid=record.seq_no) for each in book.apply(record)]
    return trades


async def exchange(orders: Stream, trades: Stream, stop_at: int) -> Book:
    """One life of the exchange: replay what its cursor says is done, then go on, and note how far it came."""
    book = Book()
    async with orders.cursor("exchange") as cursor, trades.writer() as writer:
        done = (await cursor.state()).mark
        async with orders.read(stop=done.position) as past:
            await follow(past, book, done.seq_no)
        async with cursor.read(follow=True) as reader:
            found = await follow(reader, book, stop_at)
            if found:
                await writer.append_batch(found)
            await cursor.advance(reader.position)
    return book


async def run(namespace: StreamNamespace, seed: int = 7) -> tuple[Book, Book, int]:
    """The whole story. Returns the exchange's book, the replayed one, and how many trades there were."""
    orders = await namespace.create("market/orders", config=ROLL_OFTEN)
    trades = await namespace.create("market/trades", config=ROLL_OFTEN)
    chances = [random.Random(seed + n) for n in range(TRADERS)]
    trading = asyncio.gather(*(trade(orders, f"trader-{n}", chance) for n, chance in enumerate(chances)))
    total = TRADERS * ORDERS_EACH
    await exchange(orders, trades, total // 2)
    live = await exchange(orders, trades, total)
    await trading
    replayed, middle = Book(), Book()
    async with orders.read() as reader:
        await follow(reader, replayed, total)
    async with orders.read(stop=AtSeqNo(total // 2)) as reader:
        traded = len(await follow(reader, middle, total // 2))
    last = await trades.last()
    segments = counted(len(await orders.segments()), "segment")
    print(f"{await orders.count()} orders in {segments}, {await trades.count()} trades")
    print(f"{traded} trades by order {middle.seen - 1}; the last trade was by order {last.txid if last else '-'}")
    print(f"replayed book equals the live one: {'yes' if replayed.depth() == live.depth() else 'no'}")
    return live, replayed, await trades.count()


async def main(uri: str | None) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with connect(uri or f"embedded://{directory}/bk?bookies=3") as namespace:
            await run(namespace)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
