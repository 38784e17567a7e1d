"""Clients' connections to a bookie.

early_listener        the port before a bookie serves
handshake, connection_security
                      the machine of TLS and authentication, and its shell
server                connections in, frames cut, replies out
admission             how much may be in progress, and who goes first
request_log           log lines about refused, failed and slow requests
"""
