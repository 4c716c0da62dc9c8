# SPDX-License-Identifier: BSD-3-Clause
"""JointState messages of MCAP files and ROS bags: joints in any order, not all in each message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from phistar.errors import ArgumentError, pluralize
from phistar.file_packages import rosbags
from phistar.ident.recording import FIELDS, Recording, shown
from phistar.sim.files import TOPIC, mcap_messages

JOINT_STATES = ("sensor_msgs/JointState", "sensor_msgs/msg/JointState")
"""Types of messages that are read."""
NANOSECONDS = 10**9


@dataclass(frozen=True)
class JointState:
    """A message.

    Attributes:
        topic: Where it was published.
        nanoseconds: Its stamp; the time of its recording if it has none.
        stamped: Whether it has a stamp.
        names: Of joints.
        fields: Numbers of position, velocity and effort; each empty or one for each name.
    """

    topic: str
    nanoseconds: int
    stamped: bool
    names: tuple[str, ...]
    fields: tuple[list[float], ...]


Decoder = Callable[[str, bytes, int], JointState]
"""Topic, bytes of a message, when it was written [ns] -> what it says."""


def read_mcap(source: Path, topic: str | None) -> Recording:
    """The messages of an MCAP file, encoded as JSON or as ROS does."""
    return recording_of(source, list(_mcap_states(source)), topic)


def _mcap_states(source: Path) -> Iterator[JointState]:
    decoders: dict[str, Decoder] = {}
    for message in mcap_messages(source, None):
        if message.schema in JOINT_STATES:
            if message.encoding not in DECODERS:
                known = ", ".join(DECODERS)
                raise ArgumentError(
                    f"'{source}': messages on {message.topic} are encoded as "
                    f"'{message.encoding}', expected one of {known}"
                )
            if message.encoding not in decoders:
                decoders[message.encoding] = DECODERS[message.encoding]()
            yield decoders[message.encoding](message.topic, message.data, message.nanoseconds)


def read_bag(source: Path, topic: str | None) -> Recording:
    """The messages of a bag of ROS 1 or 2."""
    package = rosbags()
    with package.highlevel.AnyReader([source], default_typestore=_types("ROS2_HUMBLE")) as reader:
        wanted = [each for each in reader.connections if each.msgtype in JOINT_STATES]
        messages = reader.messages(connections=wanted) if wanted else ()
        states = [
            _ros_state(each.topic, reader.deserialize(data, each.msgtype), nanoseconds)
            for each, nanoseconds, data in messages
        ]
    return recording_of(source, states, topic)


def recording_of(source: Path, states: list[JointState], topic: str | None) -> Recording:
    """Messages of one topic as a table; those with the same stamp that complete each other are one.

    Raises:
        ArgumentError: There are none, or it is not clear of which topic.
    """
    chosen, notes = _topic(source, states, topic)
    states = [state for state in states if state.topic == chosen]
    joints = tuple(dict.fromkeys(name for state in states for name in state.names))
    stamps, rows = _rows_by_stamp(states)
    values = np.full((len(stamps), len(FIELDS), len(joints)), np.nan)
    place = {name: k for k, name in enumerate(joints)}
    uneven = 0
    for state, row in zip(states, rows, strict=True):
        if len(set(state.names)) < len(state.names):
            twice = next(name for name in state.names if state.names.count(name) > 1)
            raise ArgumentError(f"'{source}': joint '{twice}' is there twice in a message")
        columns = [place[name] for name in state.names]
        for k, numbers in enumerate(state.fields):
            if len(numbers) == len(columns):
                values[row, k, columns] = numbers
            uneven += len(numbers) not in (0, len(columns))
    if uneven:
        notes.append(f"{uneven} lists are not as long as those of names, and are not used")
    unstamped = sum(not state.stamped for state in states)
    if unstamped:
        text = f"{pluralize(unstamped, 'message')} without stamp: the time of recording is taken"
        notes.append(text)
    t = np.array([(stamp - stamps[0]) / NANOSECONDS for stamp in stamps])
    return Recording(str(source), t, joints, values[:, 0], values[:, 1], values[:, 2], tuple(notes))


def _rows_by_stamp(states: Sequence[JointState]) -> tuple[list[int], list[int]]:
    """Stamps of the rows [ns], and each message's row: neighbours of one stamp share it.

    They do so as long as they are about different joints.
    """
    stamps: list[int] = []
    rows: list[int] = []
    seen: set[str] = set()
    for state in states:
        if not (stamps and stamps[-1] == state.nanoseconds and seen.isdisjoint(state.names)):
            stamps.append(state.nanoseconds)
            seen = set()
        seen.update(state.names)
        rows.append(len(stamps) - 1)
    return stamps, rows


def _topic(source: Path, states: list[JointState], wanted: str | None) -> tuple[str, list[str]]:
    """The topic to take, and a note about others."""
    topics = tuple(dict.fromkeys(state.topic for state in states))
    if not topics:
        raise ArgumentError(f"'{source}' has no message of the type {JOINT_STATES[1]}")
    if wanted is not None and wanted not in topics:
        raise ArgumentError(
            f"'{source}' has no joint states on '{wanted}'; it has some on {shown(topics)}"
        )
    chosen = wanted or (topics[0] if len(topics) == 1 else TOPIC)
    if chosen not in topics:
        raise ArgumentError(f"'{source}' has joint states on {shown(topics)}; choose by topic=...")
    others = [each for each in topics if each != chosen]
    return chosen, [f"of {chosen}; not used: {shown(others)}"] if others else []


def _json_state(topic: str, data: bytes, nanoseconds: int) -> JointState:
    message = json.loads(data)
    stamp, stamped = message.get("header", {}).get("stamp"), True
    if stamp is not None:
        nanoseconds = stamp["sec"] * NANOSECONDS + stamp.get("nanosec", stamp.get("nsec", 0))
    elif "t" in message:
        nanoseconds = round(float(message["t"]) * NANOSECONDS)
    else:
        stamped = False
    fields = tuple(
        [np.nan if x is None else float(x) for x in message.get(field, ())] for field in FIELDS
    )
    return JointState(topic, nanoseconds, stamped, tuple(message["name"]), fields)


class MessageTypes(Protocol):
    """Types of messages of a release of ROS."""

    def deserialize_cdr(self, data: bytes, kind: str, /) -> object:
        """A message of ROS 2."""

    def deserialize_ros1(self, data: bytes, kind: str, /) -> object:
        """A message of ROS 1."""


def _types(release: str) -> MessageTypes:
    """Types of messages; those of joint states are the same in all releases of a ROS."""
    types = rosbags().typesys
    found: MessageTypes = types.get_typestore(types.Stores[release])
    return found


def _json_decoder() -> Decoder:
    return _json_state


def _cdr_decoder() -> Decoder:
    read = _types("ROS2_HUMBLE").deserialize_cdr
    return lambda topic, data, at: _ros_state(topic, read(data, JOINT_STATES[1]), at)


def _ros1_decoder() -> Decoder:
    read = _types("ROS1_NOETIC").deserialize_ros1
    return lambda topic, data, at: _ros_state(topic, read(data, JOINT_STATES[1]), at)


def _ros_state(topic: str, message: Any, nanoseconds: int) -> JointState:
    stamp = message.header.stamp
    stamped = bool(stamp.sec or stamp.nanosec)
    if stamped:
        nanoseconds = stamp.sec * NANOSECONDS + stamp.nanosec
    fields = tuple(np.asarray(getattr(message, name), dtype=float).tolist() for name in FIELDS)
    return JointState(topic, nanoseconds, stamped, tuple(message.name), fields)


DECODERS: Mapping[str, Callable[[], Decoder]] = {
    "json": _json_decoder,
    "cdr": _cdr_decoder,
    "ros1": _ros1_decoder,
}
"""Encodings of messages: what makes a decoder, once for a log."""
