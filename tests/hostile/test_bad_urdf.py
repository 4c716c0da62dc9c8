# SPDX-License-Identifier: BSD-3-Clause
"""Malformed and hostile URDF documents: what expectations.csv says happens, and nothing worse."""

import csv
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from phistar.errors import PhistarError, RobotFileError, RobotNotFoundError, UnsafeFileError
from phistar.loaders import load_model
from phistar.loaders.load_report import LoadReport
from phistar.loaders.robot_source import Source
from phistar.model import Model
from tests.helpers import ROOT, SHARED, needs_shared

BAD = SHARED / "bad"

MAX_SECONDS = 5.0
"""Of a processor, also a slow and busy one; what a hostile file could cost is minutes."""

# What must be said about a file, besides its name. For those that load: nv.
NAMES: dict[str, tuple[str, ...]] = {
    "only_declaration.urdf": ("no root element",),
    "truncated.urdf": ("truncated.urdf:3:140", "not well-formed"),
    "unclosed_tag.urdf": ("unclosed_tag.urdf:6:9", "mismatched tag"),
    "mismatched_tag.urdf": ("mismatched_tag.urdf:5:73", "jiont"),
    "unquoted_attribute.urdf": ("unquoted_attribute.urdf:3:12",),
    "duplicate_attribute.urdf": ("duplicate_attribute.urdf:3", "duplicate attribute"),
    "trailing_garbage.urdf": ("trailing_garbage.urdf:7", "junk after the root element"),
    "gzip_misnamed.urdf": ("not XML", "gzip"),
    "latin1_undeclared.urdf": ("latin1_undeclared.urdf:3", "not valid UTF-8"),
    "utf8_bom.urdf": (),
    "unicode_names.urdf": (),
    "crlf_tabs_comments.urdf": (),
    "html_error_page.urdf": ("<html>", "expected <robot>", "<mujoco>"),
    "quadratic_blowup.urdf": ("DOCTYPE",),
    "external_entity_file.urdf": ("DOCTYPE",),
    "external_entity_http.urdf": ("DOCTYPE",),
    "package_traversal.urdf": (),
    "mesh_absolute_path.urdf": (),
    "zero_links.urdf": ("no link",),
    "joint_only.urdf": ('joint "j" refers to unknown parent link "a"',),
    "unknown_parent.urdf": ('joint "j"', 'parent link "nope"'),
    "unknown_child.urdf": ('joint "j"', 'child link "nope"'),
    "missing_parent_elem.urdf": ('joint "j"', "<parent>"),
    "two_trees.urdf": ('2 root links found: "a", "c"',),
    "no_root_cycle.urdf": ("no root link", "b - c - a - b", "cycle"),
    "self_joint.urdf": ('joint "j" connects link "b" to itself', 'link "b" has 2 parent joints'),
    "two_parents.urdf": ('link "c" has 2 parent joints: "j1", "j2"',),
    "dup_joint.urdf": ('duplicate joint name "j"',),
    "joint_no_type.urdf": ('joint "j" has no type',),
    "zero_axis.urdf": ('joint "j": axis is zero',),
    "nonunit_axis.urdf": ('joint "j"', "normalised to 0 0 1"),
    "nan_axis.urdf": ('joint "j": axis "nan" is not finite',),
    "axis_two_values.urdf": ('joint "j": axis needs 3 values, got 2',),
    "axis_missing.urdf": (),
    "comma_decimal.urdf": ('joint "j"', 'cannot parse origin xyz "0,1"'),
    "inf_origin.urdf": ('joint "j"', "origin", "not finite"),
    "rpy_degrees_hint.urdf": ('joint "j"', "90 rad exceeds 2*pi", "degrees", "kept"),
    "missing_limit_revolute.urdf": ('joint "j": <limit> is required for revolute', "unlimited"),
    "missing_limit_prismatic.urdf": ('joint "j": <limit> is required for prismatic',),
    "negative_damping.urdf": ('joint "j": negative damping',),
    "mimic_cycle.urdf": ("mimic cycle j1 -> j2 -> j1",),
    "mimic_chain.urdf": (),
    "mimic_no_joint.urdf": ('joint "j": <mimic> without joint',),
    "mass_missing_value.urdf": ('link "a": <mass> without value',),
    "mass_text.urdf": ('link "b": cannot parse mass "1kg"',),
    "mass_huge.urdf": ('link "b": mass 1e+300 kg is absurd',),
    "mass_hex.urdf": ('link "b": cannot parse mass "0x10"',),
    "mass_underscore.urdf": ('link "b": cannot parse mass "1_000"',),
    "inertia_triangle.urdf": ('link "b"', "triangle inequality"),
    "inertia_zero_with_mass.urdf": ('link "b"', "joint 'j'", "D = 0"),
    "inertia_nan.urdf": ('link "b": inertia', "not finite"),
    "inertial_no_mass.urdf": ('link "b": <inertial> without <mass>',),
    "inertial_twice.urdf": ('link "b": two <inertial> elements',),
    "xacro_include.urdf": ("unexpanded xacro", "trust_xacro=True"),
    "xacro_macro_call.urdf": ("xacro:arm", "part of the robot is missing"),
    "generated/chain_5k.urdf": (),
    "generated/star_100k.urdf": (),
    "generated/unreadable.urdf": ("Permission denied",),
    "generated/dangling.urdf": ("no such file",),
    "does_not_exist.urdf": ("no such file",),
}
LAWS: dict[str, Callable[[Model], bool]] = {
    "utf8_bom.urdf": lambda model: model.nv == 1,
    "unicode_names.urdf": lambda model: model.joint_names == ("关节1",),
    "crlf_tabs_comments.urdf": lambda model: (model.nv, len(model.links)) == (1, 2),
    "package_traversal.urdf": lambda model: model.nv == 1,
    "mesh_absolute_path.urdf": lambda model: model.nv == 1,
    "axis_missing.urdf": lambda model: vars(model.joint("j").joint_kind)["axis"] == (1, 0, 0),
    "nonunit_axis.urdf": lambda model: vars(model.joint("j").joint_kind)["axis"] == (0, 0, 1),
    "mimic_chain.urdf": lambda model: (model.bodies[2].scale, model.bodies[2].offset) == (6, 0.5),
    "generated/chain_5k.urdf": lambda model: model.nv == 5000,
    "generated/star_100k.urdf": lambda model: (model.nv, len(model.bodies)) == (0, 0),
}
OUTCOMES = {
    "error": {"error"},
    "warning": {"warning"},
    "ok": {"ok"},
    "error-or-warning": {"error", "warning"},
    "error-or-ok": {"ok", "error"},
    "ok-or-error": {"ok", "error"},
}
LARGE = {"generated/chain_5k.urdf", "generated/star_100k.urdf"}


def rows() -> list[dict[str, str]]:
    """The rows about URDF files."""
    if not (BAD / "expectations.csv").is_file():
        return []
    with (BAD / "expectations.csv").open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["format"] == "urdf"]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that are too large or too odd to be stored."""
    folder = tmp_path_factory.mktemp("generated")
    subprocess.run([sys.executable, BAD / "make_special.py", folder], check=True)
    return folder


def outcome(path: Path | Source) -> tuple[str, str, Model | None]:
    """ "ok", "warning" or "error", everything that was said, and the model."""
    report = LoadReport(str(path), "unknown")
    try:
        model, _ = load_model(path, report=report)
    except RobotFileError as error:
        return "error", str(error), None
    except PhistarError as error:
        said = [str(error), *map(str, report.errors)]
        assert report.errors, "the report does not hold the error"
        return "error", "\n".join(said), None
    said = [str(problem) for problem in report.problems]
    return "warning" if report.warnings else "ok", "\n".join(said), model


@needs_shared
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_bad_file_behaves_as_expected(row: dict[str, str], request: pytest.FixtureRequest) -> None:
    """Each file is refused, warned of or read as its row says, in time, naming the culprit."""
    name = row["file"]
    if name == "generated/unreadable.urdf" and os.geteuid() == 0:
        pytest.skip("root may read every file")
    path = BAD / name
    if name.startswith("generated/"):
        path = request.getfixturevalue("generated") / path.name
    start = time.process_time()
    result, said, model = outcome(path)
    assert name in LARGE or time.process_time() - start < MAX_SECONDS
    assert result in OUTCOMES[row["expect"]], said
    for text in (path.name, *NAMES[name]) if result != "ok" else ():
        assert text in said
    if name in LAWS:
        assert model is not None
        assert LAWS[name](model)


@needs_shared
def test_every_row_is_known() -> None:
    """A new row needs its texts here."""
    assert {row["file"] for row in rows()} == set(NAMES)


@needs_shared
def test_secrets_stay_secret() -> None:
    """Nothing of a file that an entity points to appears in what is said."""
    _, said, _ = outcome(BAD / "external_entity_file.urdf")
    assert "root:" not in said


@needs_shared
@pytest.mark.parametrize("name", ["directory.urdf", "symlink_loop.urdf", "fifo.urdf"])
def test_what_is_not_a_file_is_refused_at_once(generated: Path, name: str) -> None:
    """A folder, a loop of links and a pipe without a writer are errors that name the path."""
    with pytest.raises(RobotFileError, match=name.replace(".", r"\.")):
        load_model(generated / name)


@needs_shared
def test_dangling_link_is_not_found(generated: Path) -> None:
    """A link whose target is gone is a missing file, for Python too."""
    with pytest.raises(RobotNotFoundError, match=r"dangling\.urdf") as caught:
        load_model(generated / "dangling.urdf")
    assert isinstance(caught.value, FileNotFoundError)


@needs_shared
def test_a_chain_of_100_000_links_loads(generated: Path) -> None:
    """The longest chain is read without recursion; every link moves with its own coordinate."""
    model, report = load_model(generated / "chain_100k.urdf")
    assert model.nv == 100_000
    assert model.total_mass == 100_000.0
    assert [body.parent for body in model.bodies[:3]] == [-1, 0, 1]
    assert model.bodies[-1].parent == 99_998
    assert model.joint("j99999").where == "chain_100k.urdf:100001"
    assert report.problems == []


# A document of each kind that could be made to cost much more than its size.
LINK = '<link name="a"/>'


def _joints(count: int, inside: str, kind: str = "fixed") -> str:
    rows = (inside.replace("@", str(k)).replace("#", str(k ^ 1)) for k in range(count))
    return "".join(
        f'<link name="b{k}"/><joint name="j{k}" type="{kind}">{row}</joint>'
        for k, row in enumerate(rows)
    )


HANG = '<parent link="a"/><child link="b@"/>'
HOSTILE: dict[str, Callable[[], str]] = {
    "undeclared prefixes": lambda: "<x:y/>" * 30_000,
    "unknown elements": lambda: "<foo/>" * 60_000,
    "more elements than allowed": lambda: "<a/>" * 4_000_000,
    "unknown links": lambda: _joints(8_000, '<parent link="p@"/><child link="q@"/>'),
    "joints without ends": lambda: _joints(20_000, ""),
    "many small cycles": lambda: _joints(8_000, '<parent link="b@"/><child link="b#"/>'),
    "one child of many": lambda: _joints(8_000, '<parent link="a"/><child link="b0"/>'),
    "a vector of millions": lambda: _joints(1, f"<origin xyz='{'1 ' * 2_000_000}'/>{HANG}"),
    "a number of millions": lambda: _joints(1, f'<origin xyz="{"1" * 9_000_000} 0 0"/>{HANG}'),
    "a name of millions": lambda: f'<link name="{"n" * 9_000_000}"/>',
    "frames of nothing": lambda: "".join(
        f'<frame name="f{k}" link="z{k}"/>' for k in range(20_000)
    ),
    "one name for all": lambda: LINK * 20_000,
    "mimic cycles": lambda: _joints(5_000, f'{HANG}<mimic joint="j#"/>', "continuous"),
    "mimics of nothing": lambda: _joints(5_000, f'{HANG}<mimic joint="z@"/>', "continuous"),
    "deep nesting": lambda: "<a>" * 100_000 + "</a>" * 100_000,
    "many attributes": lambda: "<a " + " ".join(f'a{k}="0"' for k in range(100_000)) + "/>",
    "many namespaces": lambda: "<a " + " ".join(f'xmlns:a{k}="u"' for k in range(20_000)) + "/>",
}


def hostile(kind: str) -> bytes:
    """A whole document of that kind."""
    return f'<robot name="r">{LINK}{HOSTILE[kind]()}</robot>'.encode()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_document_is_cheap(kind: str) -> None:
    """A robot or an error of ours within seconds, with a message of bounded length."""
    source = Source(hostile(kind), "x.urdf")
    start = time.process_time()
    result, said, _ = outcome(source)
    assert time.process_time() - start < MAX_SECONDS
    first = said.partition("\n")[0]
    assert len(first) < 2000
    if result == "error":
        assert first.startswith("x.urdf")


MEASURE = """
import json, os, pickle, resource, sys
from phistar.errors import PhistarError
from phistar.loaders import load_model
load_model(b'<robot name="r"><link name="a"/></robot>')
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def taken(data):
    before = peak()
    try:
        load_model(data)
    except PhistarError:
        pass
    return (peak() - before) / 1024
found = {}
for name, data in pickle.load(sys.stdin.buffer).items():
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, str(taken(data)).encode())
        os._exit(0)
    os.close(write)
    found[name] = float(os.read(read, 100))
    os.wait()
print(json.dumps(found))
"""
"""Each document is read in a process of its own, the child of one that has read an empty robot."""


def _megabytes(documents: dict[str, bytes]) -> dict[str, float]:
    """Memory that reading each document takes beyond that of an empty robot."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input=pickle.dumps(documents),
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_memory_is_measured() -> None:
    """A document of many links takes what its robot takes, an empty one after it little."""
    links = "".join(f'<link name="link{i}"/>' for i in range(20_000))
    large = f'<robot name="r">{links}</robot>'.encode()
    small = b'<robot name="r"><link name="a"/></robot>'
    found = _megabytes({"large": large, "small": small})
    assert found["large"] > 20 > found["small"]


@pytest.fixture(scope="module")
def hostile_megabytes() -> dict[str, float]:
    """Of all documents."""
    return _megabytes({kind: hostile(kind) for kind in HOSTILE})


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_document_is_small_in_memory(
    kind: str, hostile_megabytes: dict[str, float]
) -> None:
    """Reading takes less than 200 MB more than an empty robot takes."""
    assert hostile_megabytes[kind] < 200


@needs_shared
def test_entity_bombs_are_small_in_memory() -> None:
    """A document that would grow in memory is refused before it does."""
    names = ("quadratic_blowup.urdf", "external_entity_file.urdf")
    found = _megabytes({name: (BAD / name).read_bytes() for name in names})
    assert found.keys() == set(names)
    assert max(found.values()) < 100


def test_floods_are_unsafe() -> None:
    """Too many elements, or too deep ones, are refused as unsafe rather than as malformed."""
    for kind in ("more elements than allowed", "deep nesting"):
        with pytest.raises(UnsafeFileError):
            load_model(hostile(kind))
