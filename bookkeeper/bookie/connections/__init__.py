"""Clients' connections to a bookie.

early_listener        the port before a bookie serves
handshake, connection_security
                      the machine of TLS and authentication, and its shell
server                connections in, frames cut, replies out
flow_control          when one connection is not read, and when its client is too slow
admission             how much the whole bookie may have in progress, and who goes first
request_charge        what a request is charged with
add_chunk             parts of a chunk of adds
request_log           log lines about refused, failed and slow requests
server_metrics        what the connections count
"""
