"""What a run of the tests consists of, and who watches it: ``make test``, ``unit``, ``room``, ``changed``, ``test-all``
(and ``costs``, which measures).

The *core* proves each promise once and is run by every commit. Everything else is cut into *buckets* of equal cost; a
run takes the buckets that its commit draws, so that so many commits in a row run all of it. ``tests/README.md`` says
what lies where.
"""
