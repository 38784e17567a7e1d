"""Garbage collection: which ledgers are provably deleted (``garbage_proof``, pure), and the passes that drop their data
(``garbage_collector``)."""
