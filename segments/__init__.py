"""A segment topic log: streams of records, each a chain of ledgers."""
