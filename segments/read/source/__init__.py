"""What is read: a stream's node and its ledgers.

stream_source     the stream's client, node and ledgers
chain_follower    the stream's node, as last read
known_part        what one reader knows, for readers elsewhere
segment_feed      the entries of one segment, in runs
segment_entries   single entries of a segment
"""
