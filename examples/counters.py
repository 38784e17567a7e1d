"""Counters that survive their machine: python examples/counters.py JOURNAL HOST:PORT, as often as you like."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator

from journal_manager import JournalError, Op, RequestId, replicated


class Counters:
    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def apply(self, op: Op) -> bytes:
        name, amount = op.body.decode().split()
        self.values[name] = self.values.get(name, 0) + int(amount)
        return str(self.values[name]).encode()

    def snapshot(self) -> Iterator[bytes]:
        yield json.dumps(self.values).encode()

    async def restore(self, chunks: AsyncIterator[bytes]) -> None:
        self.values = json.loads(b"".join([chunk async for chunk in chunks]) or "{}")


async def main(journal: str, address: str) -> None:
    counters = Counters()
    async with replicated(journal, counters, name=address) as replica:

        async def answer(words: list[str]) -> str:
            match words:
                case ["add", client, call, name, amount]:  # a client that repeats a call is counted once
                    request = RequestId(client.encode(), int(call))
                    return (await replica.submit(f"{name} {int(amount)}".encode(), request=request)).result.decode()
                case ["get", name]:
                    return str(await replica.read(lambda: counters.values.get(name, 0)))
            return "error: add CLIENT CALL NAME AMOUNT, or get NAME"

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                try:
                    said = await answer(line.decode().split())
                except (JournalError, ValueError) as error:
                    said = f"error: {error}"
                writer.write(f"{said}\n".encode())
            writer.close()

        host, port = address.split(":")
        async with await asyncio.start_server(serve, host, int(port)) as server:
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
