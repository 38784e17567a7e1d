"""The gRPC gateway of streams: ``bk gateway grpc``.

command         the verb
service         a whole gateway: port, cluster, health, the end in good order
server          the port: gRPC's server with our services, its limits, health and reflection
port_security   certificates for the port; what gRPC knows of a client
call_guard      what every call has: who asks, which streams, errors as statuses, metrics
stream_calls, append_calls, read_calls, segment_calls, cursor_calls
                the services
served_streams  the streams that calls have named lately
stream_ownership, ownership_state
                who appends to a stream: this gateway, another one, or a program with the library
metadata_watch  whether the metadata store answers
gateway_metrics what the gateway counts
config          what an operator may set
"""
