"""One cluster, two languages: our client and Java's, on our bookies, Java's, and both in one ensemble.

    clients      what the matrix asks of a client, and ours
    java_client  Java's client, driven through Py4J
    killed       writers that end in the middle of their work
    clusters     one ZooKeeper, three clusters: ours, Java's, mixed
    stories      one function a row: what is done and what must come of it
    java_tools   Java's programs on our bookies: shell, autorecovery, benchmark, DistributedLog
    our_tools    our programs on Java's bookies: commands, edit logs, gateway
    way_out      Java bookies join a cluster of ours, ours leave; Java's cluster is moved to ours, and back
    cells        rows and columns as data, with the reasons of those that cannot exist
    document     the matrix as a part of docs/compatibility.md
    __main__     ``make interop``: run them all and print a table

The same cells run under pytest, in ``test_matrix``. Beside them, ``stream_stub`` is a user of the gateway of streams in
Java, on a stub generated from its protocol, which ``test_stream_stub`` runs.
"""
