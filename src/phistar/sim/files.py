# SPDX-License-Identifier: BSD-3-Clause
"""Simulations as files: NumPy's archive (NPZ), a table (CSV), a log (MCAP).

An archive keeps everything, bit by bit, batches as well. A table and a log have one sample. What no
file keeps: the dense output of schemes that choose their steps, wrenches on frames and prescribed
motion; a loaded simulation knows that something acted.
"""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.file_packages import mcap
from phistar.model.model import HasModel, Model

if TYPE_CHECKING:
    from phistar.sim.simulation import Simulation

FORMAT = 1
"""Version of the archives."""
TOPIC = "/joint_states"
"""Channel of a log; its messages have the fields of ROS's JointState."""
_NANOSECONDS = 1e9
_DAMAGES = (KeyError, ValueError, EOFError, IndexError, zipfile.BadZipFile, zlib.error)
"""What readers raise of files that are damaged, or of another kind."""
_TEXTS = ("scheme", "variables", "engine")
_NUMBERS = ("steps", "rejected")

Fields = dict[str, Any]
"""What a simulation is made of, or a message, by name."""


def coordinate_names(model: Model, space: str) -> list[str]:
    """A name for each entry of q or v: ``q.joint``, or ``q.joint.2`` where a joint has several."""
    size = model.nq if space == "q" else model.nv
    names = [""] * size
    for joint_name in model.joint_names:
        joint = model.joints[joint_name]
        entries = range(size)[joint.q_slice if space == "q" else joint.v_slice]
        for i, entry in enumerate(entries):
            names[entry] = f"{space}.{joint_name}" + (f".{i}" if len(entries) > 1 else "")
    return names


def save(sim: Simulation, path: str | Path) -> Path:
    """Write a simulation; the suffix of the path says how.

    Raises:
        ArgumentError: An unknown suffix, or a batch in a format that takes one sample.
    """
    target = Path(path)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise _unknown_suffix(target)
    if sim.q.ndim != 2 and target.suffix.lower() != ".npz":
        raise ArgumentError(
            f"'{target.name}' has room for one motion, and this simulation is a batch "
            f"{sim.q.shape[1:-1]}; save it as .npz"
        )
    write(sim, target)
    return target


def load(path: str | Path, robot: HasModel | Model) -> Simulation:
    """Read a simulation of a robot that ``save`` wrote.

    Raises:
        ArgumentError: It is none, is damaged, or is one of another robot.
    """
    from phistar.sim.simulation import Simulation

    source = Path(path)
    model = robot if isinstance(robot, Model) else robot.model
    read = _READERS.get(source.suffix.lower())
    if read is None:
        raise _unknown_suffix(source)
    try:
        found = read(source, model)
    except _DAMAGES as error:
        if isinstance(error, ArgumentError):
            raise
        said = " ".join(str(error).split())
        raise ArgumentError(f"'{source}' is no simulation that phistar wrote: {said}") from None
    states = len(found["t"])
    expected = {"q": (states, model.nq), "v": (states, model.nv)}
    for name, (rows, columns) in expected.items():
        shape = found[name].shape
        if (shape[0], shape[-1]) != (rows, columns):
            raise ArgumentError(
                f"'{source}': {name} has shape {shape}, expected ({rows}, ..., {columns}) "
                f"of robot '{model.name}'"
            )
    return Simulation(model=model, **found)


def _unknown_suffix(path: Path) -> ArgumentError:
    known = ", ".join(_WRITERS)
    return ArgumentError(f"'{path.name}' ends in '{path.suffix}', expected one of {known}")


def _check_names(path: Path, found: list[str], model: Model) -> None:
    """Raise if coordinates of a file are not those of the robot."""
    expected = coordinate_names(model, "q") + coordinate_names(model, "v")
    if found == expected:
        return
    strange = [name for name in found if name not in expected]
    absent = [name for name in expected if name not in found]
    details = f"; it has {strange[:3]}" if strange else ""
    details += f"; it lacks {absent[:3]}" if absent else ""
    raise ArgumentError(
        f"'{path}' is a motion of another robot than '{model.name}'"
        f"{details or '; its coordinates are in another order'}"
    )


def _acted(sim: Simulation) -> bool:
    return sim.external or sim.told is not None


def _write_npz(sim: Simulation, path: Path) -> None:
    names = coordinate_names(sim.model, "q") + coordinate_names(sim.model, "v")
    about = {
        "format": FORMAT,
        "robot": sim.model.name,
        "names": names,
        "external": _acted(sim),
        "passive": list(sim.passive),
        **{name: getattr(sim, name) for name in (*_TEXTS, *_NUMBERS)},
    }
    arrays = {"t": sim.t, "q": sim.q, "v": sim.v, "tau": sim.tau, "energy": sim.energy()}
    if sim.diverged is not None:
        arrays["diverged"] = sim.diverged
    np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]


def _read_npz(path: Path, model: Model) -> Fields:
    if not zipfile.is_zipfile(path):
        path.stat()  # says so if there is none
        raise ValueError("it is no archive of NumPy, or its end is missing")
    with np.load(path, allow_pickle=False) as archive:
        about = json.loads(str(archive["about"]))
        if about["format"] != FORMAT:
            raise ArgumentError(
                f"'{path}' has format {about['format']}, and this phistar reads {FORMAT}"
            )
        _check_names(path, about["names"], model)
        found: Fields = {name: archive[name] for name in ("t", "q", "v", "tau")}
        if "diverged" in archive:
            found["diverged"] = archive["diverged"]
    found["passive"] = tuple(about["passive"])
    return found | {name: about[name] for name in (*_TEXTS, *_NUMBERS, "external")}


def _columns(sim: Simulation) -> tuple[list[str], Array]:
    """Names and rows of a table; joint forces are held to the next row, the last has none."""
    tau = np.concatenate([sim.tau, np.full_like(sim.v[:1], np.nan)])
    forces = [f"tau{name[1:]}" for name in coordinate_names(sim.model, "v")]
    names = [*coordinate_names(sim.model, "q"), *coordinate_names(sim.model, "v")]
    rows = np.column_stack([sim.t, sim.q, sim.v, tau, sim.energy()])
    return ["t", *names, *forces, "energy"], rows


def _write_csv(sim: Simulation, path: Path) -> None:
    names, rows = _columns(sim)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([repr(float(x)) for x in row] for row in rows)


def csv_table(path: Path) -> tuple[list[str], Array]:
    """Names and rows of a table of numbers; an empty cell is NaN.

    Raises:
        ValueError: It is none.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:  # Excel begins with a mark
        try:
            head, *lines = list(csv.reader(file)) or [[]]
        except csv.Error as error:
            raise ValueError(f"it is no table: {error}") from None
        if not head:
            raise ValueError("its first line is empty, expected names of columns")
        for mark, words in (";", "semicolons"), ("\t", "tabs"):
            if len(head) == 1 and mark in head[0]:
                raise ValueError(f"its columns are separated by {words}, expected commas")
        for number, line in enumerate(lines, 2):
            if line and len(line) != len(head):
                raise ValueError(f"line {number} has {len(line)} cells, and the first {len(head)}")
        numbers = [
            [_cell(x, head[k], number) for k, x in enumerate(line)]
            for number, line in enumerate(lines, 2)
            if line
        ]
    return [name.strip() for name in head], np.array(numbers).reshape(-1, len(head))


def _cell(text: str, column: str, line: int) -> float:
    """A number; NaN of an empty cell."""
    try:
        return float(text) if text.strip() else np.nan
    except ValueError:
        where = f"line {line}, column '{column}'"
        raise ValueError(f"{where}: {text[:40]!r} is no number") from None


def _read_csv(path: Path, model: Model) -> Fields:
    return _table(path, *csv_table(path), model)


def _table(path: Path, head: list[str], rows: Array, model: Model) -> Fields:
    """A simulation from the columns of a table, in any order; forces may be absent."""
    column = {name: rows[:, k] for k, name in enumerate(head)}
    q_names, v_names = coordinate_names(model, "q"), coordinate_names(model, "v")
    present = [name for name in q_names + v_names if name in column]
    strange = [name for name in head if name.startswith(("q.", "v.")) and name not in present]
    _check_names(path, present + strange, model)
    t = column["t"]
    if len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise ArgumentError(f"'{path}': times must increase, and there must be two of them")
    zeros = np.zeros(len(t))
    tau = [column.get(f"tau{name[1:]}", zeros) for name in v_names]
    return {
        "t": t,
        "q": np.stack([column[name] for name in q_names], axis=-1),
        "v": np.stack([column[name] for name in v_names], axis=-1),
        "tau": np.stack(tau, axis=-1)[:-1],
        "scheme": "file",
        "variables": "v",
        "engine": path.suffix.lstrip("."),
        "steps": len(t) - 1,
        "external": True,
    }


def _write_mcap(sim: Simulation, path: Path) -> None:
    names, rows = _columns(sim)
    with path.open("wb") as file:
        writer = mcap().writer.Writer(file)
        writer.start(profile="", library="phistar")
        schema = json.dumps({"type": "object", "properties": _SCHEMA}).encode()
        number = writer.register_schema("sensor_msgs/JointState", "jsonschema", schema)
        channel = writer.register_channel(TOPIC, "json", number)
        for row in rows:
            stamp = round((row[0] - rows[0, 0]) * _NANOSECONDS)
            message = dict(zip(names, (float(x) for x in row), strict=True))
            text = json.dumps(_joint_state(sim.model, message))
            writer.add_message(channel, stamp, text.encode(), stamp)
        writer.finish()


_SCHEMA = {
    "t": {"type": "number"},
    "name": {"type": "array", "items": {"type": "string"}},
    **{
        field: {"type": "array", "items": {"type": "number"}}
        for field in ("position", "velocity", "effort")
    },
    "values": {"type": "object"},
}


def _joint_state(model: Model, values: Mapping[str, float]) -> Fields:
    """A message: joints with one coordinate as JointState has them, and all numbers by name."""
    single = [name for name in model.joint_names if f"q.{name}" in values]
    finite = {name: x if np.isfinite(x) else None for name, x in values.items()}
    return {
        "t": values["t"],
        "name": single,
        "position": [finite[f"q.{name}"] for name in single],
        "velocity": [finite[f"v.{name}"] for name in single],
        "effort": [finite[f"tau.{name}"] for name in single],
        "values": finite,
    }


class LogMessage(NamedTuple):
    """A message of a log: names of its topic, schema and encoding, its time [ns], its data."""

    topic: str
    schema: str
    encoding: str
    nanoseconds: int
    data: bytes


def mcap_messages(path: Path, topic: str | None = TOPIC) -> Iterator[LogMessage]:
    """The messages of a log, in order of time.

    Args:
        path: An MCAP file.
        topic: Of one channel; None: of all.

    Raises:
        ArgumentError: It is damaged, or no log.
    """
    topics, make_reader = None if topic is None else [topic], mcap().reader.make_reader
    with path.open("rb") as file:
        try:
            reader = make_reader(file, validate_crcs=True)
            for schema, channel, message in reader.iter_messages(topics=topics):
                name = "" if schema is None else str(schema.name)
                yield LogMessage(
                    channel.topic, name, channel.message_encoding, message.log_time, message.data
                )
        except Exception as error:  # mcap raises what unpacks and decompresses its parts
            said = " ".join(str(error).split()) or type(error).__name__
            raise ArgumentError(f"'{path}' is damaged, or no MCAP log: {said}") from None


def _read_mcap(path: Path, model: Model) -> Fields:
    values = [json.loads(message.data)["values"] for message in mcap_messages(path)]
    if not values:
        raise ArgumentError(f"'{path}' has no message on {TOPIC}")
    head = list(values[0])
    rows = np.array([[np.nan if x[name] is None else x[name] for name in head] for x in values])
    return _table(path, head, rows, model)


_WRITERS: Mapping[str, Callable[[Simulation, Path], None]] = {
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".mcap": _write_mcap,
}
_READERS: Mapping[str, Callable[[Path, Model], Fields]] = {
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".mcap": _read_mcap,
}
