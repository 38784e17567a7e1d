"""Who appends to a stream: this gateway, another one, or a program with the library.

stream_ownership  takes, keeps and gives up the lease
ownership_state   decides
"""
