"""From a position on, across segments, to the end or for ever.

fetch_machine     where a fetch goes on, what is handed out, what is missing (pure)
fetcher           its shell
reader_state      idle, stuck, how far behind
"""
