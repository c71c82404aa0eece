# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints a Perfetto trace as JSON: for each track, in their order, its slices [begin, end, name], in the order of their
ends, and its instants [at, name].

It is read by the schema that Perfetto publishes, and judged by the rules that trace_processor has for TrackEvent. What
these do not know, or would count as an error, ends this with status 1.
"""

import json
import sys

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def no_unknown_fields(message):
    assert not len(UnknownFieldSet(message)), f"fields that {message.DESCRIPTOR.full_name} does not have"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in [value] if isinstance(value, Message) else value:
                no_unknown_fields(part)


trace = schema.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
no_unknown_fields(trace)

tracks = {}
opened = {}
last = 0
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id, "a packet of no sequence"
    if packet.HasField("track_descriptor"):
        descriptor = packet.track_descriptor
        assert descriptor.uuid not in tracks, f"track {descriptor.uuid} is described twice"
        assert not descriptor.parent_uuid or descriptor.parent_uuid in tracks, "a track's parent is unknown"
        tracks[descriptor.uuid] = {"name": descriptor.name, "slices": [], "instants": []}
        continue
    event = packet.track_event
    track = tracks[event.track_uuid]
    assert packet.timestamp >= last, "an event is earlier than the one before it"
    last = packet.timestamp
    if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
        begun = opened.setdefault(event.track_uuid, [])
        assert not begun or track["name"] == "functions", f"a slice of {track['name']} begins inside another"
        begun.append((packet.timestamp, event.name))
    elif event.type == schema.TrackEvent.TYPE_SLICE_END:
        begin, name = opened[event.track_uuid].pop()
        track["slices"].append([begin, packet.timestamp, name])
    else:
        assert event.type == schema.TrackEvent.TYPE_INSTANT, f"an event of type {event.type}"
        track["instants"].append([packet.timestamp, event.name])
assert not any(opened.values()), "slices that do not end"
json.dump(list(tracks.values()), sys.stdout)
