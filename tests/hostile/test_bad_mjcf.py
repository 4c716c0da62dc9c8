# SPDX-License-Identifier: BSD-3-Clause
"""Malformed and hostile MJCF documents: what expectations.csv says happens, and nothing worse."""

import csv
import sys
import time
from pathlib import Path

import pytest

from phistar.errors import ModelError, UnsafeFileError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf.mjcf_reader import read_mjcf
from phistar.loaders.robot_source import Source, read_source
from tests.helpers import SHARED, needs_shared

BAD = SHARED / "bad"

MAX_SECONDS = 5.0
"""Of a processor, also a slow and busy one; what a hostile file could cost is minutes."""

# What the message must hold, besides the file's name.
NAMES: dict[str, tuple[str, ...]] = {
    "mjcf_include_self.xml": ("include cycle", "mjcf_include_self.xml"),
    "mjcf_unknown_element.xml": (".xml:1", "<wheel>"),
    "mjcf_unknown_attribute.xml": (".xml:1", 'joint "j"', 'attribute "colour"'),
    "mjcf_joint_in_world.xml": ('joint "j"', "worldbody"),
    "mjcf_unknown_joint_type.xml": ('joint "j"', 'type "helical"'),
    "mjcf_nonunit_quat.xml": (),
    "mjcf_missing_inertia.xml": ('body "a"', "moving body without mass"),
    "mjcf_negative_mass.xml": ('body "a"', "negative mass -1"),
    "mjcf_fullinertia_indef.xml": ('body "a"', "fullinertia must be positive definite"),
    "mjcf_nan_pos.xml": ('body "a"', 'pos "nan 0 0" is not finite'),
    "mjcf_unknown_class.xml": ('joint "j"', 'unknown default class "ghost"'),
    "mjcf_unknown_childclass.xml": ('body "a"', 'unknown default childclass "ghost"'),
    "mjcf_range_reversed.xml": ('joint "j"', "range[0] must be < range[1]"),
    "mjcf_autolimits_off_range.xml": ('joint "j"', "given but limited unspecified"),
    "mjcf_equality_unknown_body.xml": ("equality", 'unknown body "ghost"'),
    "mjcf_keyframe_wrong_size.xml": ("keyframe qpos", "3 values", "expected 1"),
    "mjcf_missing_mesh.xml": ("nope.stl",),
    "mjcf_mesh_inertia_needed.xml": ('inertia of body "a" needs mesh nope.stl',),
    "mjcf_negative_armature.xml": ('joint "j"', "armature -5", "indefinite"),
    "mjcf_degree_radian_mixup.xml": ('body "a"', "degrees", "euler"),
    "mjcf_frame_and_replicate.xml": ("1000000000", "limit"),
    "mjcf_deep_default.xml": ("depth",),
}
OUTCOMES = {
    "error": {"error"},
    "ok": {"ok"},
    "error-or-warning": {"error", "warning"},
    "ok-or-warning": {"ok", "warning"},
    "ok-or-error": {"ok", "error"},
}


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """MuJoCo is imported before the clock starts."""
    read_mjcf(Source(b"<mujoco/>", "warm.xml"))


def rows() -> list[dict[str, str]]:
    """The rows about MJCF files."""
    if not (BAD / "expectations.csv").is_file():
        return []
    with (BAD / "expectations.csv").open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["format"] == "mjcf"]


def outcome(source: Source) -> tuple[str, str]:
    """What became of a document ("ok", "warning" or "error") and everything that was said."""
    report = LoadReport(source.name, "unknown")
    try:
        read_mjcf(source, report=report)
    except ModelError as error:
        known = "reported" if report.errors else "missing from the report"
        return "error", f"{error} ({known})"
    return "warning" if report.warnings else "ok", "\n".join(str(p) for p in report.problems)


@needs_shared
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_bad_file_behaves_as_expected(row: dict[str, str]) -> None:
    """Each file is refused, warned of or read as its row says, in time, naming the culprit."""
    source = read_source(BAD / row["file"])
    start = time.process_time()
    result, said = outcome(source)
    assert time.process_time() - start < MAX_SECONDS
    assert result in OUTCOMES[row["expect"]], said
    assert "missing from the report" not in said
    for text in (row["file"], *NAMES[row["file"]]) if result != "ok" else ():
        assert text in said


@needs_shared
def test_every_row_is_known() -> None:
    """A new row needs its texts here."""
    assert {row["file"] for row in rows()} == set(NAMES)


INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
HOSTILE = {
    "10 000 nested bodies": (
        "<worldbody>" + f"<body><joint/>{INERTIAL}" * 10_000 + "</body>" * 10_000 + "</worldbody>"
    ),
    "nested replicates": (
        "<worldbody>"
        + '<replicate count="100">' * 4
        + "<body/>"
        + "</replicate>" * 4
        + "</worldbody>"
    ),
    "an empty replicate": '<worldbody><replicate count="1000000000"/></worldbody>',
    "a huge flexible part": (
        '<worldbody><flexcomp name="f" type="grid" count="999 999 999" dim="3"/></worldbody>'
    ),
    "a huge height field": (
        '<asset><hfield name="h" nrow="99999" ncol="99999" size="1 1 1 1"/></asset>'
    ),
    "huge custom data": '<custom><numeric name="n" size="999999999"/></custom>',
    "a huge made-up mesh": (
        '<asset><mesh name="m" builtin="supersphere" params="99999 1 1"/></asset>'
    ),
    "very many elements": "<worldbody>" + "<body/>" * 100_000 + "</worldbody>",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_sizes_are_refused(kind: str) -> None:
    """What would cost MuJoCo gigabytes or hours never reaches it."""
    source = Source(f"<mujoco>{HOSTILE[kind]}</mujoco>".encode(), "h.xml")
    start, before = time.process_time(), peak_memory()
    with pytest.raises(UnsafeFileError, match=r"^h\.xml"):
        read_mjcf(source)
    assert time.process_time() - start < MAX_SECONDS
    assert peak_memory() - before < 200e6


def peak_memory() -> float:
    """Largest memory this process has had [bytes]."""
    resource = pytest.importorskip("resource", reason="peak memory is measured on Unix only")
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * (1.0 if sys.platform == "darwin" else 1024.0)


def test_sizes_of_a_simulation_are_not_reserved() -> None:
    """<size> may ask for any memory, keyframes and user data: none of it is made."""
    size = '<size memory="900G" nkey="999999999" nuserdata="999999999" nuser_body="999999999"/>'
    texture = '<texture name="t" type="2d" builtin="flat" width="99999" height="99999"/>'
    text = f"<mujoco>{size}<asset>{texture}</asset></mujoco>"
    model, _ = read_mjcf(Source(text.encode(), "h.xml"))
    assert set(model.configurations) == {"home"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02", "not well-formed"),
        (b"<mujoco>", "not well-formed"),
        (b"<robot name='r'><link name='a'/></robot>", "This is a URDF file"),
        (b"<html/>", "starts with <mujoco>"),
        (b"<!DOCTYPE mujoco [<!ENTITY a 'b'>]><mujoco/>", "DOCTYPE"),
        (b"<mujoco><worldbody><body pos='1e400 0 0'/></worldbody></mujoco>", "not finite"),
        (b"<mujoco><worldbody><body pos='1e200 0 0'/></worldbody></mujoco>", "absurdly large"),
        (b"<mujoco><option gravity='0 0 -inf'/></mujoco>", "gravity"),
        (b"<mujoco><default><joint axis='nan 0 0'/></default></mujoco>", "joint in default"),
        (
            b"<mujoco><worldbody><flexcomp name='f' type='mesh' file='/dev/zero'/></worldbody>"
            b"</mujoco>",
            "/dev/zero",
        ),
    ],
)
def test_nonsense_is_refused_with_a_reason(text: bytes, said: str) -> None:
    """What is not a robot is an error of ours that says why."""
    with pytest.raises(ModelError) as caught:
        read_mjcf(Source(text, "n.xml"))
    assert said in str(caught.value)
    assert str(caught.value).startswith("n.xml")


def test_names_that_look_like_numbers_are_names() -> None:
    """A joint may be called "nan" and refer to a body called "inf"."""
    text = (
        f'<mujoco><worldbody><body name="inf"><joint name="nan"/>{INERTIAL}</body></worldbody>'
        '<equality><connect body1="inf" anchor="0 0 0"/></equality></mujoco>'
    )
    model, report = read_mjcf(Source(text.encode(), "n.xml"))
    assert model.joint_names == ("nan",)
    assert report.problems == []
    (loop,) = model.loops
    assert "inf" in (loop.predecessor, loop.successor)


def test_a_link_to_itself_does_not_hang(tmp_path: Path) -> None:
    """An include that is a loop of symbolic links is refused."""
    (tmp_path / "loop.xml").symlink_to("loop.xml")
    main = tmp_path / "m.xml"
    main.write_text('<mujoco><include file="loop.xml"/></mujoco>')
    with pytest.raises(ModelError, match=r"loop\.xml"):
        read_mjcf(read_source(main))
