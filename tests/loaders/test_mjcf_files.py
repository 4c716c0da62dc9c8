# SPDX-License-Identifier: BSD-3-Clause
"""The files an MJCF document refers to: found as MuJoCo finds them, and only inside the roots."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from phistar.errors import ModelError, UnsafeFileError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf import mjcf_files
from phistar.loaders.mjcf.mjcf_reader import read_mjcf
from phistar.loaders.robot_source import Source, read_source
from phistar.model.model import Model
from phistar.model.numpy_kinematics import link_poses

INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
# A corner of a cube: not symmetric, so that MuJoCo moves and turns it.
TETRAHEDRON = "v 0 0 0\nv 2 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def body(name: str, inside: str = "<joint/>") -> str:
    """A body with an inertia."""
    return f'<body name="{name}">{inside}{INERTIAL}</body>'


def world(inside: str, head: str = "") -> str:
    """A document with bodies and what comes before them."""
    return f"<mujoco>{head}<worldbody>{inside}</worldbody></mujoco>"


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files; returns the path of the first one."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / next(iter(files))


def read(path: Path, *roots: Path) -> tuple[Model, LoadReport]:
    """Our reading of a file."""
    return read_mjcf(read_source(path), roots=roots)


def test_includes_are_found_as_mujoco_finds_them(tmp_path: Path) -> None:
    """A file is looked for beside the including one, then beside the main one."""
    main = write(
        tmp_path,
        {
            "main.xml": '<mujoco><include file="sub/a.xml"/></mujoco>',
            "sub/a.xml": f'<x><include file="deep/b.xml"/><worldbody>{body("a")}</worldbody></x>',
            "sub/deep/b.xml": '<x><include file="c.xml"/><include file="sub/d.xml"/></x>',
            "c.xml": world(body("c")),
            "sub/d.xml": world(body("d", '<include file="e.xml"/>')),
            "sub/e.xml": '<x>\n\n<joint name="e"/></x>',
        },
    )
    model, _ = read(main)
    peer = mujoco.MjModel.from_xml_path(str(main))
    assert model.link_names == tuple(peer.body(i).name for i in range(peer.nbody))
    assert model.link_names == ("world", "c", "d", "a")
    assert model.joints["e"].where == "e.xml:3"


def test_error_in_an_included_file_names_it(tmp_path: Path) -> None:
    """An error that MuJoCo finds is placed in the file it comes from."""
    text = f"<x>\n<worldbody>\n{body('a')}<wheel/></worldbody></x>"
    main = write(
        tmp_path, {"main.xml": '<mujoco>\n<include file="a.xml"/></mujoco>', "a.xml": text}
    )
    with pytest.raises(ModelError, match=r"^a\.xml:3: wheel in worldbody"):
        read(main)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"m.xml": '<mujoco><include file="m.xml"/></mujoco>'}, "include cycle"),
        (
            {
                "m.xml": '<mujoco><include file="a.xml"/></mujoco>',
                "a.xml": '<x><include file="b.xml"/></x>',
                "b.xml": '<x><include file="a.xml"/></x>',
            },
            r"b\.xml:1: .*include cycle",
        ),
        (
            {
                "m.xml": '<mujoco><include file="a.xml"/><include file="./a.xml"/></mujoco>',
                "a.xml": "<x/>",
            },
            "included before",
        ),
        ({"m.xml": '<mujoco><include file="no.xml"/></mujoco>'}, 'include "no.xml": no such file'),
        ({"m.xml": "<mujoco><include/></mujoco>"}, "no file"),
        (
            {"m.xml": '<mujoco><include file="a.xml"><x/></include></mujoco>', "a.xml": "<x/>"},
            "has elements inside",
        ),
        ({"m.xml": '<mujoco><include file="a.xml"/></mujoco>', "a.xml": "<x>"}, r"a\.xml:1"),
        (
            {"m.xml": '<mujoco><include file="a.xml"/></mujoco>', "a.xml": "<!DOCTYPE x><x/>"},
            r"a\.xml:1: DOCTYPE",
        ),
    ],
)
def test_bad_includes_are_refused(tmp_path: Path, files: dict[str, str], text: str) -> None:
    """Cycles, repeats, missing and malformed files are errors that name the place."""
    with pytest.raises(ModelError, match=text):
        read(write(tmp_path, files))


@pytest.mark.parametrize("kind", ["include", "absolute", "link", "model"])
def test_files_outside_the_roots_are_refused(tmp_path: Path, kind: str) -> None:
    """Neither dots, absolute paths, links nor sub-models lead outside, unless a root allows it."""
    outside = write(tmp_path / "outside", {"x.xml": world(body("x"))})
    file = {"absolute": str(outside), "link": "link.xml"}.get(kind, "../outside/x.xml")
    head = f'<include file="{file}"/>'
    if kind == "model":
        head = f'<asset><model name="x" file="{file}"/></asset>'
    main = write(tmp_path / "home", {"m.xml": f"<mujoco>{head}</mujoco>"})
    (main.parent / "link.xml").symlink_to(outside)
    with pytest.raises(UnsafeFileError, match="outside the folders"):
        read(main)
    model, _ = read(main, outside.parent)
    assert model.link_names == (("world",) if kind == "model" else ("world", "x"))


def test_bytes_include_from_the_roots_only(tmp_path: Path) -> None:
    """A document given as bytes has no folder of its own."""
    write(tmp_path, {"a.xml": world(body("a"))})
    source = Source(b'<mujoco><include file="a.xml"/></mujoco>', "<bytes>")
    with pytest.raises(UnsafeFileError, match="given as bytes"):
        read_mjcf(source)
    model, _ = read_mjcf(source, roots=[tmp_path])
    assert model.link_names == ("world", "a")


def test_long_rows_of_includes_are_refused(tmp_path: Path) -> None:
    """A thousand files, each including the next, do not exhaust the stack."""
    files = {f"f{i}.xml": f'<mujoco><include file="f{i + 1}.xml"/></mujoco>' for i in range(1000)}
    with pytest.raises(UnsafeFileError, match="nest deeper than"):
        read(write(tmp_path, files))


def test_size_counts_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits hold for a document with its includes."""
    monkeypatch.setattr(mjcf_files, "MAX_TAGS", 5)
    written = {
        "m.xml": '<mujoco><include file="a.xml"/></mujoco>',
        "a.xml": "<x><size/><size/></x>",
    }
    with pytest.raises(UnsafeFileError, match="7 tags"):
        read(write(tmp_path, written))


def test_attached_models(tmp_path: Path) -> None:
    """Sub-models are attached as MuJoCo does, with their own includes, meshes and places."""
    attach = '<attach model="arm" body="a" prefix="l_"/><attach model="arm" body="a" prefix="r_"/>'
    main = write(
        tmp_path,
        {
            "m.xml": world(
                body("base", f"<joint/>{attach}"),
                '<asset><model name="arm" file="arm/arm.xml"/></asset>',
            ),
            "arm/arm.xml": '<mujoco><compiler meshdir="meshes"/><asset><mesh file="t.obj"/></asset>'
            '<worldbody>\n<include file="a.xml"/></worldbody></mujoco>',
            "arm/a.xml": '<x>\n<body name="a" pos="1 2 3"><joint name="j"/>'
            '<geom type="mesh" mesh="t"/></body></x>',
            "arm/meshes/t.obj": TETRAHEDRON,
        },
    )
    model, report = read(main)
    peer = mujoco.MjModel.from_xml_path(str(main))
    assert model.link_names == tuple(peer.body(i).name for i in range(peer.nbody))
    assert [model.link(n).mass for n in model.link_names] == pytest.approx(peer.body_mass)
    assert model.joints["l_j"].where == "a.xml:2"
    assert report.problems == []


def test_models_that_contain_themselves_are_refused(tmp_path: Path) -> None:
    """A cycle of sub-models is found before MuJoCo follows it."""
    text = '<mujoco><asset><model name="x" file="b.xml"/></asset></mujoco>'
    with pytest.raises(ModelError, match="contains itself"):
        read(write(tmp_path, {"a.xml": text, "b.xml": text}))


def test_chains_of_models_are_counted(tmp_path: Path) -> None:
    """Sub-models that attach others ten times each are refused before they are multiplied."""
    files = {"m0.xml": world(body("b"))}
    for i in range(1, 7):
        attach = "".join(f'<attach model="x" body="b" prefix="p{k}_"/>' for k in range(10))
        head = f'<asset><model name="x" file="m{i - 1}.xml"/></asset>'
        files[f"m{i}.xml"] = world(body("b", f"<joint/>{attach}"), head)
    write(tmp_path, files)
    with pytest.raises(UnsafeFileError, match=r"attach.*would add"):
        read(tmp_path / "m6.xml")


MESH = (
    '<asset><mesh name="m" file="{file}" scale="2 2 2" refpos="0.1 0.2 0.3" refquat="1 1 0 0"/>'
    "</asset>"
)
MESH_BODY = (
    '<body name="a" pos="0 0 1"><joint name="j"/>{inertial}'
    '<geom type="mesh" mesh="m" pos="1 2 3" euler="10 20 30"/></body>'
)


def mesh_document(inertial: str = "", file: str = "t.obj", compiler: str = "") -> str:
    """A body with a mesh."""
    return world(MESH_BODY.format(inertial=inertial), compiler + MESH.format(file=file))


def test_inertia_from_a_mesh_is_mujocos(tmp_path: Path) -> None:
    """Where a body has no inertial, its mesh is opened and gives MuJoCo's inertia."""
    compiler = '<compiler meshdir="meshes"/>'
    main = write(tmp_path, {"m.xml": mesh_document(compiler=compiler), "meshes/t.obj": TETRAHEDRON})
    model, report = read(main)
    peer = mujoco.MjModel.from_xml_path(str(main))
    link = model.link("a")
    assert link.mass == peer.body_mass[1]
    np.testing.assert_array_equal(link.com, peer.body_ipos[1])
    np.testing.assert_allclose(np.linalg.eigvalsh(link.inertia), np.sort(peer.body_inertia[1]))
    assert report.problems == []


@pytest.mark.parametrize("inertial", ["", INERTIAL])
def test_mesh_shape_is_where_mujoco_draws_it(tmp_path: Path, inertial: str) -> None:
    """Vertices of the file, scaled and placed by the shape, are MuJoCo's vertices in the world.

    With an explicit inertia the file is not opened, yet the shape is the same.
    """
    main = write(tmp_path, {"m.xml": mesh_document(inertial), "t.obj": TETRAHEDRON})
    model, _ = read(main)
    (shape,) = model.link("a").visuals
    assert (shape.kind, shape.mesh) == ("mesh", "t.obj")
    vertices = np.array([[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1.0]]) * shape.size
    q = np.array([0.3])
    pose = link_poses(model, q)["a"] @ shape.pose
    peer = mujoco.MjModel.from_xml_path(str(main))
    data = mujoco.MjData(peer)
    data.qpos[:] = q
    mujoco.mj_kinematics(peer, data)
    expected = peer.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    actual = vertices @ pose[:3, :3].T + pose[:3, 3]
    # MuJoCo keeps vertices in single precision and may change their order.
    np.testing.assert_allclose(np.sort(actual, axis=0), np.sort(expected, axis=0), atol=1e-5)


def test_absent_mesh_is_a_warning_where_inertia_is_explicit(tmp_path: Path) -> None:
    """Only drawing needs it: the robot loads, the file is named, the shape keeps its name."""
    model, report = read(write(tmp_path, {"m.xml": mesh_document(INERTIAL, "nope.stl")}))
    (problem,) = report.problems
    assert (problem.severity, problem.code) == ("warning", "mesh-absent")
    assert "nope.stl" in problem.what
    assert model.link("a").collisions[0].mesh == "nope.stl"


@pytest.mark.parametrize(
    ("document", "file"),
    [
        (mesh_document(file="nope.stl"), "nope.stl"),
        (mesh_document(file="../t.obj"), "../t.obj"),
        (mesh_document(file="/dev/zero"), "/dev/zero"),
        (mesh_document(INERTIAL, "no.obj", '<compiler inertiafromgeom="true"/>'), "no.obj"),
    ],
)
def test_inertia_that_needs_an_absent_mesh_is_an_error(
    tmp_path: Path, document: str, file: str
) -> None:
    """It is never taken as zero; a file outside the roots counts as absent."""
    write(tmp_path, {"t.obj": TETRAHEDRON})
    main = write(tmp_path / "home", {"m.xml": document})
    with pytest.raises(ModelError, match=f'inertia of body "a" needs mesh {file}'):
        read(main)


def test_bodies_that_never_move_do_without_a_mesh(tmp_path: Path) -> None:
    """The mesh of a body welded to the world is missed with a warning, unless its base floats."""
    text = mesh_document(file="nope.stl").replace('<joint name="j"/>', "")
    main = write(tmp_path, {"m.xml": text})
    model, report = read(main)
    assert model.link("a").mass == 0
    assert {p.code for p in report.warnings} == {"mesh-needed", "no-mass"}
    with pytest.raises(ModelError, match="needs mesh"):
        read_mjcf(read_source(main), floating_base=True)


def test_files_for_drawing_are_never_opened(tmp_path: Path) -> None:
    """Textures and height fields may be absent or outside; what refers to them stays."""
    head = (
        '<asset><texture name="t" type="2d" file="/dev/zero"/><material name="m" texture="t"/>'
        '<hfield name="h" file="../no.png" size="1 1 1 1"/></asset>'
    )
    inside = f'<geom name="g" type="hfield" hfield="h"/>{body("a")}'
    inside = inside.replace("<joint/>", '<joint/><geom name="b" size="1" material="m"/>')
    text = world(inside, head).replace(
        "</mujoco>", '<contact><pair geom1="g" geom2="b"/></contact></mujoco>'
    )
    model, report = read(write(tmp_path, {"m.xml": text}))
    assert model.nv == 1
    assert report.problems == []
    assert {"texture (1)", "hfield (1)"} <= {entry.what for entry in report.ignored}
