"""``bk journal oev``: show an edits file of HDFS, as ``hdfs oev`` does.

Also by itself: ``python -m journal_manager.commands.oev FILE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, Final

import click

from journal_manager.edits import Op
from journal_manager.errors import JournalError
from journal_manager.hdfs.edits_file import EditsReader
from journal_manager.hdfs.oev import XML_TAIL, json_line, xml_head, xml_record
from journal_manager.hdfs.op_codec import decode_hdfs_op, ensure_layout

_PIECE_BYTES: Final = 1 << 20


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option(
    "-p",
    "--format",
    "style",
    type=click.Choice(["xml", "json"]),
    default="xml",
    show_default=True,
    help="XML as hdfs oev prints it, or one line of JSON for each edit.",
)
@click.option("--recover", is_flag=True, help="Skip damage up to the next whole edit, and report what was skipped.")
def oev(file: BinaryIO, style: str, recover: bool) -> None:
    """Show the edits of an HDFS edits FILE (- reads standard input).

    Every checksum is verified. Damage ends the output with an error, unless --recover is given. The file is only read.
    """
    reader = EditsReader(recover=recover)
    try:
        for line in _lines(reader, file, style):
            click.echo(line, nl=False)
    except JournalError as error:
        raise click.ClickException(str(error)) from error
    for offset, count in reader.skipped:
        click.echo(f"{count} bytes at byte {offset} are not an edit, and were skipped", err=True)


def _lines(reader: EditsReader, file: BinaryIO, style: str) -> Iterator[str]:
    show = xml_record if style == "xml" else json_line
    begun = False
    for op in _edits(reader, file):
        layout_version = reader.layout_version
        assert layout_version is not None
        if not begun and style == "xml":
            yield xml_head(layout_version)
        begun = True
        yield show(op.txid, decode_hdfs_op(op.opcode, op.body, layout_version))
    if style == "xml" and reader.layout_version is not None:
        if not begun:
            ensure_layout(reader.layout_version)
            yield xml_head(reader.layout_version)
        yield XML_TAIL


def _edits(reader: EditsReader, file: BinaryIO) -> Iterator[Op]:
    read: Callable[[], bytes] = partial(file.read, _PIECE_BYTES)
    for piece in iter(read, b""):
        yield from reader.feed(piece)
    yield from reader.finish()


if __name__ == "__main__":
    oev()
