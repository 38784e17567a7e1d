"""Garbage collection: which ledgers are provably deleted (pure), and the passes that drop their data."""
