"""Connections between clients and bookies: frames, replies, TLS and authentication.

Read in this order
    connection        a client's connection to one bookie: requests, streams of adds
    replies           which reply belongs to which request: a pure machine per dialect
    frame_protocol    sends and receives frames, for both sides
    receive_memory    bounds the memory of frames that have arrived in part: a pure machine
    client_handshake  TLS and authentication before a connection is used
    tls               the settings of TLS
    backoff           when to try again
    in_process        connections inside one process, without sockets

Nothing is imported here: a bookie needs the frames but not the client's connection, a configuration only ``tls``.
"""
