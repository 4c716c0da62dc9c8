# SPDX-License-Identifier: BSD-3-Clause
"""Mesh names -> files: found inside the allowed folders, refused everywhere else."""

import os
from pathlib import Path

import pytest

from phistar.errors import PhistarError, RobotFileError, RobotNotFoundError, UnsafeFileError
from phistar.loaders.assets import resolve_asset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package 'arm' with a robot and a mesh, beside a secret that nobody may read."""
    (tmp_path / "share" / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "share" / "arm" / "urdf").mkdir()
    (tmp_path / "share" / "arm" / "meshes" / "a b.stl").write_text("mesh")
    (tmp_path / "secret.stl").write_text("secret")
    return tmp_path


def test_every_spelling_finds_the_mesh(folder: Path) -> None:
    """package://, file:// and relative names of one mesh give the same file."""
    share, mesh = folder / "share", folder / "share" / "arm" / "meshes" / "a b.stl"
    urdf = share / "arm" / "urdf"
    spelled = [
        "package://arm/meshes/a b.stl",
        "../meshes/a b.stl",
        f"file://{mesh}".replace(" ", "%20"),
        f"FILE:{mesh}",
        str(mesh),
    ]
    for uri in spelled:
        assert resolve_asset(uri, [share], base=urdf) == mesh.resolve()


def test_a_package_may_be_a_root_or_stand_above_the_file(folder: Path) -> None:
    """A package is found as a root itself, and as a folder above the robot file."""
    arm = folder / "share" / "arm"
    assert resolve_asset("package://arm/meshes/a b.stl", [arm]).is_file()
    deep = resolve_asset("package://arm/meshes/a b.stl", [folder], base=arm / "urdf")
    assert deep == (arm / "meshes" / "a b.stl").resolve()


@pytest.mark.parametrize(
    "uri",
    [
        "package://../secret.stl",
        "package://arm/../../secret.stl",
        "package://arm/../../../../../../etc/passwd",
        "package:///etc/passwd",
        "package://",
        "../../../secret.stl",
        "/etc/passwd",
        "file:///etc/passwd",
        "file:///dev/zero",
        "file://server/share/x.stl",
        "http://127.0.0.1:9/x.stl",
        "https://127.0.0.1:9/x.stl",
        "ftp://127.0.0.1/x.stl",
        "data:model/stl,x",
        "a\0b",
        "",
    ],
)
def test_everything_outside_is_refused(folder: Path, uri: str) -> None:
    """Traversal, absolute paths, other machines and other schemes are refused by name."""
    share = folder / "share"
    with pytest.raises(UnsafeFileError, match="is not read") as caught:
        resolve_asset(uri, [share], base=share / "arm" / "urdf")
    assert repr(uri)[1:-1][:20] in repr(str(caught.value))


def test_a_link_that_leads_outside_is_refused(folder: Path) -> None:
    """Where a link leads counts, not where it stands."""
    (folder / "share" / "way_out.stl").symlink_to(folder / "secret.stl")
    with pytest.raises(UnsafeFileError, match="outside the allowed folders"):
        resolve_asset("way_out.stl", [folder / "share"])


def test_no_roots_no_files(folder: Path) -> None:
    """Without an allowed folder nothing is read."""
    with pytest.raises(UnsafeFileError, match="no folder is allowed"):
        resolve_asset(str(folder / "secret.stl"), [])


def test_missing_meshes_are_named(folder: Path) -> None:
    """A file that is not there is an error that names it and the folders searched."""
    with pytest.raises(RobotNotFoundError, match=r"nope\.stl.*share"):
        resolve_asset("package://arm/nope.stl", [folder / "share"])


def test_only_regular_files_are_given(folder: Path) -> None:
    """A folder, a pipe, a loop of links and an endless name are errors of ours, at once."""
    share = folder / "share"
    os.mkfifo(share / "pipe.stl")
    (share / "loop.stl").symlink_to(share / "loop.stl")
    for uri in ("arm", "pipe.stl"):
        with pytest.raises(RobotFileError, match="not a regular file"):
            resolve_asset(uri, [share])
    for uri in ("loop.stl", "x" * 5000):
        with pytest.raises(PhistarError):
            resolve_asset(uri, [share])
