"""The services of the gateway of streams.

stream_calls, append_calls, read_calls, segment_calls, publish_calls, cursor_calls, transfer_calls
                one module for each service, or a part of it
health_calls    the state of health, for anybody
name_watch      whether a stream still has the name by which a call may use it
served_streams  the streams that calls have named lately
"""
