"""``python -m bookkeeper.bookie``: one bookie in the foreground, until SIGTERM or SIGINT.

Exit codes: 0 stopped cleanly; 74 the disk failed (K23); 75 the metadata store does not answer; 78 the configuration or
the directory is not right; 1 anything else.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import click

from bookkeeper import real
from bookkeeper.bookie.config import BookieConfig, config_from, load_config
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import (
    ConfigError,
    CookieError,
    DirectoryLockedError,
    MetadataError,
    MetadataUnavailableError,
    StorageError,
)
from bookkeeper.meta import Metadata

EXIT_DISK = 74
EXIT_METADATA = 75
EXIT_CONFIG = 78


async def serve(config: BookieConfig) -> int:
    """Run one bookie until a signal comes or its disk fails; the process's exit code."""
    seams = real.system_seams()
    metadata = await Metadata.connect(config.metadata_uri, seams)
    try:
        server = BookieServer(config, seams, metadata)
        await server.start()
        http = f", http://{server.http_address}" if server.http_address else ""
        click.echo(f"bookie {server.bookie_id} serves at {server.address}{http}")
        if config.insecure:
            logging.getLogger(__name__).warning("insecure: open to everyone who reaches %s", server.address)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        stopped = asyncio.ensure_future(stop.wait())
        failed = asyncio.ensure_future(server.run_until_failure())
        await asyncio.wait([stopped, failed], return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            click.echo(f"the disk failed: {failed.result()}", err=True)
            return EXIT_DISK
        failed.cancel()
        await server.stop()
        return 0
    finally:
        await metadata.close()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "path", type=click.Path(dir_okay=False), help="A TOML file; other options go before it.")
@click.option("--metadata", "metadata_uri", help="Address of the metadata service, as zk://127.0.0.1:2181/ledgers.")
@click.option("--directory", help="Where this bookie keeps its data.")
@click.option("--listen", help="HOST:PORT; port 0 chooses one with the first start. [127.0.0.1:0]")
@click.option("--bookie-id", help="Its name for ever; by default the address of its first start.")
@click.option("--http", "http_listen", help="HOST:PORT of /healthz and /metrics. [127.0.0.1:0]")
@click.option("--insecure", is_flag=True, default=None, help="Listen beyond loopback without authentication.")
@click.option("--verbose", is_flag=True, help="Log more than warnings.")
def main(path: str | None, verbose: bool, **options: str | bool | None) -> None:
    """Run a bookie in the foreground."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    given = {name: value for name, value in options.items() if value is not None}
    try:
        config = load_config(path, **given) if path else config_from(given)
        code = real.run(serve(config))
    except (ConfigError, CookieError, DirectoryLockedError) as error:
        click.echo(f"error: {error}", err=True)
        code = EXIT_CONFIG
    except MetadataUnavailableError as error:
        click.echo(f"error: the metadata store does not answer: {error}", err=True)
        code = EXIT_METADATA
    except (MetadataError, StorageError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        code = EXIT_DISK if isinstance(error, StorageError) else 1
    sys.exit(code)


if __name__ == "__main__":
    main()
