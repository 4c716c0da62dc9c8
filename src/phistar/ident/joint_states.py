# SPDX-License-Identifier: BSD-3-Clause
"""JointState messages of MCAP files and ROS bags: joints in any order, not all in each message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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


def read_mcap(source: Path, topic: str | None) -> Recording:
    """The messages of an MCAP file, encoded as JSON or as ROS does."""
    return recording_of(source, list(_mcap_states(source)), topic)


def _mcap_states(source: Path) -> Iterator[JointState]:
    for message in mcap_messages(source, None):
        if message.schema in JOINT_STATES:
            if message.encoding not in DECODERS:
                known = ", ".join(DECODERS)
                raise ArgumentError(
                    f"'{source}': messages on {message.topic} are encoded as "
                    f"'{message.encoding}', expected one of {known}"
                )
            decode = DECODERS[message.encoding]
            yield decode(message.topic, message.data, message.nanoseconds)


def read_bag(source: Path, topic: str | None) -> Recording:
    """The messages of a bag of ROS 1 or 2."""
    package = rosbags()
    try:
        reader = package.highlevel.AnyReader([source], default_typestore=_types("ROS2_HUMBLE"))
        with reader:
            wanted = [each for each in reader.connections if each.msgtype in JOINT_STATES]
            messages = reader.messages(connections=wanted) if wanted else ()
            states = [
                _ros_state(each.topic, reader.deserialize(data, each.msgtype), nanoseconds)
                for each, nanoseconds, data in messages
            ]
    except (package.highlevel.AnyReaderError, OSError) as error:
        raise ArgumentError(f"'{source}' is no whole bag of ROS: {error}") from None
    return recording_of(source, states, topic)


def recording_of(source: Path, states: list[JointState], topic: str | None) -> Recording:
    """Messages of one topic as a table; those with the same stamp that complete each other are one.

    Raises:
        ArgumentError: There are none, or it is not clear of which topic.
    """
    chosen, notes = _topic(source, states, topic)
    states = [state for state in states if state.topic == chosen]
    joints = tuple(dict.fromkeys(name for state in states for name in state.names))
    place = {name: k for k, name in enumerate(joints)}
    values = np.full((len(states), len(FIELDS), len(joints)), np.nan)
    stamps: list[int] = []
    seen: set[str] = set()
    uneven = 0
    for state in states:
        joined = bool(stamps) and stamps[-1] == state.nanoseconds and seen.isdisjoint(state.names)
        if not joined:
            stamps.append(state.nanoseconds)
            seen = set()
        seen.update(state.names)
        columns = [place[name] for name in state.names]
        for k, numbers in enumerate(state.fields):
            if len(numbers) == len(columns):
                values[len(stamps) - 1, k, columns] = numbers
            uneven += len(numbers) not in (0, len(columns))
    if uneven:
        notes.append(f"{uneven} lists are not as long as those of names, and are not used")
    unstamped = sum(not state.stamped for state in states)
    if unstamped:
        text = f"{pluralize(unstamped, 'message')} without stamp: the time of recording is taken"
        notes.append(text)
    first = stamps[0]
    t = np.array([(stamp - first) / NANOSECONDS for stamp in stamps])
    values = values[: len(stamps)]
    return Recording(str(source), t, joints, values[:, 0], values[:, 1], values[:, 2], tuple(notes))


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


@cache
def _types(release: str) -> Any:
    """Types of messages; those of joint states are the same in all releases of a ROS."""
    types = rosbags().typesys
    return types.get_typestore(types.Stores[release])


def _cdr_state(topic: str, data: bytes, nanoseconds: int) -> JointState:
    return _ros_state(
        topic, _types("ROS2_HUMBLE").deserialize_cdr(data, JOINT_STATES[1]), nanoseconds
    )


def _ros1_state(topic: str, data: bytes, nanoseconds: int) -> JointState:
    store = _types("ROS1_NOETIC")
    return _ros_state(topic, store.deserialize_ros1(data, JOINT_STATES[1]), nanoseconds)


def _ros_state(topic: str, message: Any, nanoseconds: int) -> JointState:
    stamp = message.header.stamp
    stamped = bool(stamp.sec or stamp.nanosec)
    if stamped:
        nanoseconds = stamp.sec * NANOSECONDS + stamp.nanosec
    fields = tuple(np.asarray(getattr(message, name), dtype=float).tolist() for name in FIELDS)
    return JointState(topic, nanoseconds, stamped, tuple(message.name), fields)


DECODERS: Mapping[str, Callable[[str, bytes, int], JointState]] = {
    "json": _json_state,
    "cdr": _cdr_state,
    "ros1": _ros1_state,
}
"""Encodings of messages."""
