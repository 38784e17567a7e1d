"""Replicated ledgers: create, append, read, fence, recover."""
