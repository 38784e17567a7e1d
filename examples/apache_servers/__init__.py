"""The real Apache BookKeeper, in Java, as child processes: for tests, the demo and benchmarks.

    from examples.apache_servers import ApacheBookie

    with ApacheBookie(directory / "java-1", zookeeper.uri) as bookie:
        print(bookie.bookie_id)

Nothing of Apache's is in this tree: :func:`jars` has Maven fetch the official release into a cache once.

Read in this order
    jars        the class path: version, cache, what is said when Maven, Java or the network is missing
    process     one Java program as a child: arguments, log, end, kill
    settings    configuration files: what a bookie on 127.0.0.1 needs, what makes it small, what makes it quick
    bookie      a bookie, started until it really answers

All of it blocks: call it outside of a loop, or in a thread that lives as long as the processes shall (a child ends
with the thread that started it).
"""

from examples.apache_servers.bookie import ApacheBookie
from examples.apache_servers.jars import VERSION, fetch_jars, jars, whats_missing
from examples.apache_servers.process import QUICK_START, RELEASE, JavaProcess, java_command, run_to_end
from examples.apache_servers.settings import QUICK_ADDS, client_settings

__all__ = [
    "QUICK_ADDS",
    "QUICK_START",
    "RELEASE",
    "VERSION",
    "ApacheBookie",
    "JavaProcess",
    "client_settings",
    "fetch_jars",
    "jars",
    "java_command",
    "run_to_end",
    "whats_missing",
]
