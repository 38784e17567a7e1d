"""The gRPC gateway of streams: ``bk gateway grpc``.

command         the verb
service         a whole gateway: port, cluster, health, the end in good order
server          the port: gRPC's server with our services, its limits, health and reflection
port_security   certificates for the port; what gRPC knows of a client
call_guard      what every call has: who asks, which streams, its bytes, errors as statuses, metrics
call_budget, call_bytes, caller_address
                how many bytes of requests are held, in total and for each address
request_parser  what a request costs, counted before it is parsed
health_calls    the state of health, for anybody
stream_calls, append_calls, read_calls, segment_calls, cursor_calls
                the services
served_streams  the streams that calls have named lately
stream_ownership, ownership_state
                who appends to a stream: this gateway, another one, or a program with the library
metadata_watch  whether the metadata store answers
gateway_metrics what the gateway counts
config          what an operator may set
"""
