"""Sockets, and nothing but.

Read in this order
    connection        a client's connection to one bookie: requests, streams of adds
    add_stream        the adds of one writer on one connection
    replies           which reply belongs to which request: a pure machine per dialect
    frame_protocol    frames, for both sides;  receive_memory  the memory into which connections receive
    client_handshake  TLS and authentication before a connection is used;  tls  its settings
    backoff           when to try again
    in_process        both sides in one process

Nothing is imported here: a bookie needs the frames and not the client's connection, a configuration only ``tls``.
"""
