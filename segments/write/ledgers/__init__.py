"""The ledgers of a stream, as its writer makes and fills them.

ledger_allocator  the next one, made in advance
open_segment      entries on their way to one of them
"""
