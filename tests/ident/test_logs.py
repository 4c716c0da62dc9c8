# SPDX-License-Identifier: BSD-3-Clause
"""Logs of all formats give the same samples; what is wrong with one is one line."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import CompressionType, Writer
from rosbags.rosbag1 import Writer as Rosbag1
from rosbags.rosbag2 import Writer as Rosbag2
from rosbags.typesys import Stores, get_typestore

import phistar
from phistar import ident
from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelMismatchWarning, PhistarError, UnknownNameError
from tests.ident.conftest import DT, Recorded

STATE = "sensor_msgs/msg/JointState"


@dataclass(frozen=True)
class Table:
    """Numbers to write, joints in the order of ``names``."""

    t: Array
    names: tuple[str, ...]
    q: Array
    v: Array
    tau: Array

    def rows(self) -> Iterator[tuple[float, Array, Array, Array]]:
        return zip(self.t, self.q, self.v, self.tau, strict=True)


@pytest.fixture(scope="module")
def table(recorded: Recorded) -> Table:
    """A hundred samples, joints in another order than the robot's."""
    few = slice(0, 100)
    names = recorded.known.joint_names[::-1]
    motion = (x[few, ::-1] for x in (recorded.q, recorded.v, recorded.tau))
    return Table(DT * np.arange(100.0), names, *motion)


def write_csv(path: Path, table: Table) -> Path:
    """A table."""
    head = ["t", *(f"{kind}.{name}" for kind in ("q", "v", "tau") for name in table.names)]
    rows = np.column_stack([table.t, table.q, table.v, table.tau])
    lines = [",".join(head), *(",".join(repr(float(x)) for x in row) for row in rows)]
    target = path / "log.csv"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def write_npz(path: Path, table: Table) -> Path:
    """An archive."""
    target = path / "log.npz"
    np.savez(target, t=table.t, q=table.q, v=table.v, tau=table.tau, names=np.array(table.names))
    return target


def write_packed(path: Path, table: Table) -> Path:
    """A compressed archive."""
    target = path / "log.npz"
    arrays = {"t": table.t, "q": table.q, "v": table.v, "tau": table.tau}
    np.savez_compressed(target, names=np.array(table.names), **arrays)
    return target


def write_json_mcap(
    path: Path, table: Table, packed: CompressionType = CompressionType.ZSTD
) -> Path:
    """Messages as JSON, on a topic of their own."""
    target = path / "log.mcap"
    with target.open("wb") as file:
        writer = Writer(file, compression=packed)
        writer.start()
        schema = writer.register_schema("sensor_msgs/JointState", "jsonschema", b"{}")
        channel = writer.register_channel("/arm/states", "json", schema)
        for t, q, v, tau in table.rows():
            stamp = {"sec": int(t), "nanosec": round((t - int(t)) * 1e9)}
            fields = {"position": q.tolist(), "velocity": v.tolist(), "effort": tau.tolist()}
            message = {"header": {"stamp": stamp}, "name": table.names, **fields}
            writer.add_message(channel, 0, json.dumps(message).encode(), 0)
        writer.finish()
    return target


def states(store: Any, table: Table, ros1: bool) -> Iterator[tuple[int, Any]]:
    """Stamps and messages."""
    types = store.types
    Header, Time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    first = 1_700_000_000
    for k, (t, q, v, tau) in enumerate(table.rows()):
        stamp = Time(first + int(t), round((t - int(t)) * 1e9))
        header = Header(k, stamp, "") if ros1 else Header(stamp, "")
        message = types[STATE](header, list(table.names), q.copy(), v.copy(), tau.copy())
        yield first * 10**9 + round(t * 1e9), message


def write_ros2_bag(path: Path, table: Table) -> Path:
    """A folder of ROS 2."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    target = path / "bag"
    with Rosbag2(target, version=9) as writer:
        connection = writer.add_connection("/joint_states", STATE, typestore=store)
        for stamp, message in states(store, table, False):
            writer.write(connection, stamp, store.serialize_cdr(message, STATE))
    return target


def write_ros1_bag(path: Path, table: Table) -> Path:
    """A file of ROS 1."""
    store = get_typestore(Stores.ROS1_NOETIC)
    target = path / "log.bag"
    with Rosbag1(target) as writer:
        connection = writer.add_connection("/joint_states", STATE, typestore=store)
        for stamp, message in states(store, table, True):
            writer.write(connection, stamp, store.serialize_ros1(message, STATE))
    return target


def write_cdr_mcap(path: Path, table: Table) -> Path:
    """Messages as ROS 2 encodes them."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    target = path / "log.mcap"
    with target.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema(STATE, "ros2msg", b"")
        channel = writer.register_channel("/joint_states", "cdr", schema)
        for stamp, message in states(store, table, False):
            writer.add_message(channel, stamp, bytes(store.serialize_cdr(message, STATE)), stamp)
        writer.finish()
    return target


WRITERS = [write_csv, write_npz, write_json_mcap, write_cdr_mcap, write_ros2_bag, write_ros1_bag]


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same_samples(
    write: Callable[[Path, Table], Path], table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """Joints in the robot's order, bit by bit; times to a nanosecond."""
    log = ident.read_log(write(tmp_path, table), recorded.known)
    np.testing.assert_array_equal(log.q, recorded.q[:100])
    np.testing.assert_array_equal(log.v, recorded.v[:100])
    np.testing.assert_array_equal(log.tau, recorded.tau[:100])
    np.testing.assert_allclose(log.t, table.t, rtol=0.0, atol=1e-9)
    assert log.dt == pytest.approx(DT, rel=1e-6)
    assert (log.runs, log.notes) == ((slice(0, 100),), ())


def refused(path: Path, robot: phistar.Robot, kind: type = ArgumentError, **options: bool) -> str:
    """What is said of a log, which has to be one line that names the file or the joint."""
    with pytest.raises(kind) as caught:
        ident.read_log(path, robot, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


BAD: dict[str, tuple[Callable[[Table], Table], str]] = {
    "unsorted": (lambda x: replace(x, t=np.random.default_rng(0).permutation(x.t)), "not sorted"),
    "all stamps equal": (lambda x: replace(x, t=0.0 * x.t), "has 1 usable sample of 100"),
    "one sample": (
        lambda x: Table(x.t[:1], x.names, x.q[:1], x.v[:1], x.tau[:1]),
        "has 1 usable sample of 1",
    ),
    "no sample": (
        lambda x: Table(x.t[:0], x.names, x.q[:0], x.v[:0], x.tau[:0]),
        "has 0 usable samples of 0",
    ),
    "degrees": (lambda x: replace(x, q=np.rad2deg(x.q)), "are these degrees"),
    "zero positions": (lambda x: replace(x, q=0.0 * x.q), "all positions are zero"),
    "zero forces": (lambda x: replace(x, tau=0.0 * x.tau), "all joint forces are zero"),
    "no forces": (lambda x: replace(x, tau=np.nan * x.tau), "has no joint forces"),
    "a joint less": (lambda x: replace(x, names=(x.names[0], "other")), "does not have joint"),
    "at rest": (lambda x: replace(x, q=np.ones_like(x.q)), "no joint moves"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case: str, table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """A line that names the file and what is wrong."""
    spoil, text = BAD[case]
    path = write_csv(tmp_path, spoil(table))
    robot = recorded.known.with_limits(lower=-3.0, upper=3.0)
    assert text in refused(path, robot)
    assert str(path) in refused(path, robot)


@pytest.mark.parametrize("samples", [2, 3, 10])
def test_logs_that_are_too_short(
    samples: int, table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """They can be read, and the file is named where they cannot be differentiated."""
    few = Table(
        table.t[:samples], table.names, *(x[:samples] for x in (table.q, table.v, table.tau))
    )
    path = write_csv(tmp_path, few)
    log = ident.read_log(path, recorded.known)
    text = re.escape(f"'{path}': {samples} samples at 250 a second are too few")
    with pytest.raises(ArgumentError, match=text):
        ident.identify(recorded.known, log)


def test_joints_of_another_robot(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """The first unknown name, and those that the robot has."""
    path = write_csv(tmp_path, replace(table, names=("hip", "knee")))
    text = refused(path, recorded.known, UnknownNameError)
    assert "hip" in text
    assert recorded.known.joint_names[0] in text


def test_joints_that_follow_others(tmp_path: Path) -> None:
    """Their forces count with their leaders', by virtual work; they are joints of the robot."""
    hand = phistar.load("panda_hand")
    names = (*hand.joint_names, "panda_finger_joint2")
    rng = np.random.default_rng(0)
    q, v, tau = rng.uniform(0.01, 0.03, size=(3, 50, 9))
    table = Table(DT * np.arange(50.0), names, q, v, tau)
    log = ident.read_log(write_npz(tmp_path, table), hand)
    np.testing.assert_array_equal(log.q, q[:, :8])
    expected = tau[:, :8] + np.outer(tau[:, 8], np.arange(8) == 7)
    np.testing.assert_array_equal(log.tau, expected)
    assert "follow other joints, with which their forces count" in log.notes[0]
    tau[:, 8] = np.nan
    log = ident.read_log(write_npz(tmp_path, table), hand)
    np.testing.assert_array_equal(log.tau, tau[:, :8])


def test_degrees_on_request(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """Read as degrees they are the same motion."""
    degrees = replace(table, q=np.rad2deg(table.q), v=np.rad2deg(table.v))
    log = ident.read_log(write_csv(tmp_path, degrees), recorded.known, degrees=True)
    np.testing.assert_allclose(log.q, recorded.q[:100], rtol=1e-14)
    np.testing.assert_allclose(log.v, recorded.v[:100], rtol=1e-14)


def test_what_is_put_right_is_noted(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """A gap, a clock that jumps back, a repeated stamp, a missing number, a turn."""
    t, q, v = table.t.copy(), table.q.copy(), table.v.copy()
    t[30:] += 1.0
    t[60:] -= 7.0
    t[80] = t[79]
    q[90, 0] = np.nan
    v[10, 1] = np.nan
    q[70:, 1] += 2.0 * np.pi
    log = ident.read_log(write_csv(tmp_path, replace(table, t=t, q=q, v=v)), recorded.known)
    assert log.runs == (slice(0, 30), slice(30, 60), slice(60, 98))
    assert log.v is None
    kept = np.delete(np.arange(100), [80, 90])
    np.testing.assert_allclose(log.q, recorded.q[kept], rtol=0.0, atol=1e-12)
    said = " | ".join(log.notes)
    for text in (
        "a position, a force or the time is missing: 1 sample",
        "repeat the stamp before: 1 sample",
        "some velocities are missing",
        "1 gap of up to 1.004 s",
        "clock jumps back by 6.996 s at sample 60",
        f"whole turns are taken out: {table.names[1]}",
        "stamps are not even",
    ):
        assert text in said


def test_messages_that_complete_each_other(
    table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """Joints in messages of their own with the same stamp; other topics; lists that do not fit."""
    target = tmp_path / "log.mcap"
    with target.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("sensor_msgs/JointState", "jsonschema", b"{}")
        channels = [
            writer.register_channel(name, "json", schema) for name in ("/joint_states", "/wanted")
        ]
        for k, (t, q, _, tau) in enumerate(table.rows()):
            for joint, name in enumerate(table.names):
                message = {"t": t, "name": [name], "position": [q[joint]], "effort": [tau[joint]]}
                message["velocity"] = [1.0, 2.0] if k == 5 else []
                data = json.dumps(message).encode()
                writer.add_message(channels[0], k, data, k)
            writer.add_message(channels[1], k, data, k)
        writer.finish()
    log = ident.read_log(target, recorded.known)
    np.testing.assert_array_equal(log.q, recorded.q[:100])
    assert log.notes == (
        "of /joint_states; not used: /wanted",
        "2 lists are not as long as those of names, and are not used",
    )
    with pytest.raises(ArgumentError, match=r"no joint states on '/x'; .* /joint_states, /wanted"):
        ident.read_log(target, recorded.known, topic="/x")


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".mcap", ".bag", ".txt"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01 nothing\n\xff", b"a,b\n1\n2,x,3\n"])
def test_damaged_files(suffix: str, content: bytes, recorded: Recorded, tmp_path: Path) -> None:
    """Whatever a file has, one line says that it is no log."""
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content)
    assert "log" in refused(path, recorded.known)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace(",", ";"), "separated by semicolons, expected commas"),
        (lambda text: text.replace(",", "\t"), "separated by tabs"),
        (
            lambda text: text.replace("\n", "\nsoon", 3),
            "line 2, column 't': 'soon0.0' is no number",
        ),
    ],
)
def test_cells_that_are_no_numbers(
    change: Callable[[str], str], words: str, table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """Line and column are named, and what stands between the cells."""
    path = write_csv(tmp_path, table)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    text = refused(path, recorded.known)
    assert words in text, text
    assert len(text) < 200 + len(str(path))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_tables_of_spreadsheets(
    encoding: str, table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """A mark of the byte order before the first name, lines that end as on Windows."""
    path = write_csv(tmp_path, table)
    path.write_bytes(path.read_text(encoding="utf-8").replace("\n", "\r\n").encode(encoding))
    log = ident.read_log(path, recorded.known)
    np.testing.assert_array_equal(log.q, recorded.q[:100])


def test_columns_that_are_there_twice(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """It is not chosen between two columns of one joint, whatever they are called."""
    path = write_csv(tmp_path, table)
    text, first = path.read_text(encoding="utf-8"), table.names[0]
    for other in (f"q.{first}", f"position.{first}"):
        path.write_text(text.replace(f"q.{table.names[1]}", other, 1), encoding="utf-8")
        assert f"q.{first} and {other} are both the position of '{first}'" in refused(
            path, recorded.known
        )
    names = (first, table.names[1], first)
    q, v, tau = (np.column_stack([x, x[:, 0]]) for x in (table.q, table.v, table.tau))
    twice = write_npz(tmp_path, Table(table.t, names, q, v, tau))
    assert f"joint '{first}' is there twice" in refused(twice, recorded.known)
    messages = write_json_mcap(tmp_path, Table(table.t, names, q, v, tau))
    assert f"joint '{first}' is there twice" in refused(messages, recorded.known)


TIMES_OF_ARRAYS: dict[str, tuple[Callable[[Array], Any], str]] = {
    "columns": (lambda t: t[:, None], "t has shape (100, 1), expected (N,)"),
    "a number": (lambda t: t[3], "t has shape (), expected (N,)"),
    "complex": (lambda t: t + 0j, "t has dtype complex128, expected times in s"),
    "words": (lambda t: np.array(["soon"] * len(t)), "t has dtype <U4, expected times in s"),
}


@pytest.mark.parametrize("case", TIMES_OF_ARRAYS)
def test_times_that_are_none(case: str, table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """Another shape or type is said, with the name of the array."""
    change, text = TIMES_OF_ARRAYS[case]
    path = write_npz(tmp_path, replace(table, t=change(table.t)))
    assert text in refused(path, recorded.known)


@pytest.mark.parametrize("start", [np.timedelta64(5, "ns"), np.datetime64("2026-01-01", "ns")])
def test_times_that_are_dates(start: Any, table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """Dates and durations of NumPy are seconds, whatever they are counted in."""
    stamps = start + np.round(1e9 * table.t).astype("timedelta64[ns]")
    log = ident.read_log(write_npz(tmp_path, replace(table, t=stamps)), recorded.known)
    np.testing.assert_allclose(log.t, table.t, rtol=0.0, atol=1e-9)


def test_names_as_bytes(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """As other languages write them."""
    path = tmp_path / "log.npz"
    arrays = {"t": table.t, "q": table.q, "v": table.v, "tau": table.tau}
    np.savez(path, names=np.array([name.encode() for name in table.names]), **arrays)
    np.testing.assert_array_equal(ident.read_log(path, recorded.known).q, recorded.q[:100])


def test_a_joint_without_forces_is_named(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """Not only that no sample is left."""
    path = write_npz(tmp_path, replace(table, tau=table.tau * [1.0, np.nan]))
    text = refused(path, recorded.known)
    assert f"has no joint forces of {table.names[1]}: tau or effort or torque" in text


def test_why_no_sample_is_left(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """Times that are all zero."""
    text = refused(write_npz(tmp_path, replace(table, t=0.0 * table.t)), recorded.known)
    assert "repeat the stamp before: 99 samples" in text


def test_arguments_of_read_log(table: Table, recorded: Recorded, tmp_path: Path) -> None:
    """What is no file, no robot, or asks a table for a topic."""
    path = write_csv(tmp_path, table)
    with pytest.raises(ArgumentError, match="path is None, expected the path of a log"):
        ident.read_log(None, recorded.known)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"robot is 'panda', expected a phistar\.Robot"):
        ident.read_log(path, "panda")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"a \.csv log has no topics, and '/x' is asked for"):
        ident.read_log(path, recorded.known, topic="/x")


def test_a_log_of_another_robot_with_as_many_joints(
    table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """Its joints were put into the order of the robot that it was read for."""
    log = ident.read_log(write_csv(tmp_path, table), recorded.known)
    with pytest.raises(ArgumentError, match=r"was read for joints .* has slider, hinge"):
        ident.identify(phistar.load("cartpole"), log)


@pytest.mark.parametrize("write", [write_npz, write_json_mcap, write_ros1_bag])
def test_cut_files(
    write: Callable[[Path, Table], Path], table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """A file that was not written to its end."""
    path = write(tmp_path, table)
    path.write_bytes(path.read_bytes()[:-200])
    assert str(path) in refused(path, recorded.known)


SAID: dict[str, tuple[Callable[[Table], Table], str]] = {
    "degrees": (lambda x: replace(x, v=np.rad2deg(x.v)), "all joints are 57.3 times"),
    "signs": (lambda x: replace(x, v=-x.v), "all joints are -1 times"),
    "a sign": (lambda x: replace(x, v=x.v * [1, -1]), "'{1}' are -1 times the rate of its pos"),
    "a joint without": (lambda x: replace(x, v=x.v * [0, 1]), "'{0}' are zero, and its pos"),
    "exchanged": (lambda x: replace(x, v=x.v[:, ::-1]), "'{0}' do not follow its positions"),
    "milliseconds": (lambda x: replace(x, t=1e3 * x.t), "every 4 s; are times in seconds?"),
}


@pytest.mark.parametrize("case", SAID)
def test_velocities_and_positions_that_disagree(
    case: str, recorded: Recorded, tmp_path: Path
) -> None:
    """Wrong units, signs and joints are doubts that ``identify`` passes on."""
    spoil, text = SAID[case]
    names = recorded.known.joint_names
    t = DT * np.arange(len(recorded.q))
    whole = Table(t, names, recorded.q, recorded.v, recorded.tau)
    log = ident.read_log(write_npz(tmp_path, spoil(whole)), recorded.known)
    assert text.format(*names) in log.doubts[0]
    assert "1 doubt" in repr(log) or len(log.doubts) > 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = ident.identify(recorded.known, log, folds=1, consistent=False)
    assert found.doubts[: len(log.doubts)] == log.doubts
    assert [str(each.message) for each in said] == [*found.doubts]


def test_velocities_that_are_right_are_not_doubted(recorded: Recorded, tmp_path: Path) -> None:
    """Noise, a joint at rest whose encoder steps, velocities that were never recorded."""
    rng = np.random.default_rng(3)
    t, names = DT * np.arange(len(recorded.q)), recorded.known.joint_names
    q = np.round(recorded.q + 2e-3 * rng.normal(size=recorded.q.shape), 3)
    v = recorded.v + 0.3 * rng.normal(size=q.shape)
    noisy = Table(t, names, q, v, recorded.tau)
    assert ident.read_log(write_npz(tmp_path, noisy), recorded.known).doubts == ()
    q[:, 1], v[:, 1] = np.where(t < t[700], 0.3, 0.305), 0.0
    assert ident.read_log(write_npz(tmp_path, noisy), recorded.known).doubts == ()
    log = ident.read_log(write_npz(tmp_path, replace(noisy, v=0.0 * v)), recorded.known)
    assert (log.v, log.doubts) == (None, ())
    assert "all velocities are zero and joints move" in log.notes[-1]


def test_velocities_given_as_arrays(recorded: Recorded) -> None:
    """With the time between samples they are compared as those of logs are."""
    q, v, tau = recorded.q, np.rad2deg(recorded.v), recorded.tau
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelMismatchWarning)
        found = ident.identify(recorded.known, q, v, tau=tau, dt=DT, folds=1, consistent=False)
    assert "57.3 times the rate of their positions" in found.doubts[0]


@pytest.mark.parametrize("write", [write_packed, write_json_mcap, write_ros1_bag, write_ros2_bag])
def test_damage_in_the_middle(
    write: Callable[[Path, Table], Path], table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """Whatever a package says of bytes that are not its own is one line with the file's name."""
    path = write(tmp_path, table)
    file = max((x for x in [path, *path.rglob("*")] if x.is_file()), key=lambda x: x.stat().st_size)
    content = file.read_bytes()
    said = []
    for first in range(0, len(content), len(content) // 16):
        file.write_bytes(content[:first] + b"\xff" * 200 + content[first + 200 :])
        try:
            ident.read_log(path, recorded.known)  # where ROS has no checksums, or nothing is
        except ArgumentError as error:
            said.append(str(error))
    assert len(said) >= 4
    assert all(str(path) in text and "\n" not in text for text in said)


def test_a_wrong_digit_of_a_message_is_seen(
    table: Table, recorded: Recorded, tmp_path: Path
) -> None:
    """MCAP has checksums, and they are looked at."""
    path = write_json_mcap(tmp_path, table, CompressionType.NONE)
    content = path.read_bytes()
    first = repr(float(table.q[50, 0])).encode()
    assert content.count(first) == 1
    other = first.replace(b"1", b"7") if b"1" in first else first[:-1] + b"1"
    path.write_bytes(content.replace(first, other))
    assert "crc" in refused(path, recorded.known).lower()


def test_a_simulation_is_a_log(recorded: Recorded, tmp_path: Path) -> None:
    """What ``save`` writes, in all formats, is read as a log; the last state has no force."""
    sim = recorded.known.simulate([0.3, 0.2], [0.0, 0.1], tau=[0.1, 0.0], duration=0.05, dt=1e-3)
    for suffix in (".csv", ".npz", ".mcap"):
        log = ident.read_log(sim.save(tmp_path / f"sim{suffix}"), recorded.known)
        np.testing.assert_array_equal(log.q, sim.q[:-1])
        np.testing.assert_array_equal(log.tau, sim.tau)
        np.testing.assert_allclose(log.t, sim.t[:-1], rtol=0.0, atol=1e-9)


def test_identified_from_runs(recorded: Recorded, tmp_path: Path) -> None:
    """A log with a gap gives the torques of the true robot: nothing is taken across it."""
    t = DT * np.arange(len(recorded.q))
    t[1200:] += 3.0
    motion = Table(t, recorded.known.joint_names, recorded.q, recorded.v, recorded.tau)
    log = ident.read_log(write_npz(tmp_path, motion), recorded.known)
    assert "2 runs" in repr(log)
    found = ident.identify(recorded.known, log, cutoff=10.0)
    predicted = found.predict(recorded.q, recorded.v, recorded.vdot)
    moving = np.abs(recorded.v) > 0.05
    error = np.abs(predicted - recorded.tau)[moving].max()
    assert error < 2e-3 * np.abs(recorded.tau).max()
    assert any("1 gap" in note for note in found.notes)
    with pytest.raises(ArgumentError, match="2 runs"):
        ident.identify(recorded.known, log, method="energy")
    with pytest.raises(ArgumentError, match="its own, give none"):
        ident.identify(recorded.known, log, tau=recorded.tau)
    with pytest.raises(PhistarError, match="a log of 'panda'"):
        ident.identify(phistar.load("panda"), log)
