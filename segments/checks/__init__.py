"""What is true of a stream: everything about it, what is wrong with it, and repairs.

findings    what can be wrong with a stream, and how its node is put right (pure)
scan        what a segment's entries say that it holds (pure)
overview    all that is known of a stream (data)
checker     verifies streams, and repairs their records
"""
