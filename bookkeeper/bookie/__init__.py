"""THE SERVER: requests in, replies out, one disk behind. ``python -m bookkeeper.bookie`` runs one.

Begin with :mod:`~bookkeeper.bookie.lifecycle` (from start to stop; :mod:`~bookkeeper.bookie.start` has what a start
settles first, :mod:`~bookkeeper.bookie.assembly` who knows whom), then :mod:`~bookkeeper.bookie.bookie` (what is
answered) and :mod:`~bookkeeper.bookie.connections.server_connection` (how an add travels).
:mod:`~bookkeeper.bookie.config` is what an operator may set (``http_api_config`` of the HTTP API, ``page_address`` of
the pages of health), :mod:`~bookkeeper.bookie.process` a bookie with a process of its own, and ``command`` its verb of
``bk``.

Nothing is imported here: a program that only reads a configuration needs no server.
"""
