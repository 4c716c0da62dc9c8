# SPDX-License-Identifier: BSD-3-Clause
"""What is kept on disk comes back as it was or not at all, and is nobody else's."""

import hashlib
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from phistar.backends.llvm.run import kernel_cache
from phistar.backends.llvm.run.jit import TargetCpu
from phistar.errors import ArgumentError, CacheWarning

CODE = bytes(range(256)) * 4
META = {"name": "panda inverse_dynamics", "workspace": 12, "sizes": {"q": 7}}
unix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and permissions")


@pytest.fixture(autouse=True)
def _warn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "_warned_paths", set())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where kernels are kept, as conftest.py decides."""
    return tmp_path / "cache" / "kernels"


def file_of(folder: Path, name: str) -> Path:
    """Where a kernel is kept."""
    return folder / f"{name}{kernel_cache.SUFFIX}"


def test_code_comes_back(folder: Path) -> None:
    """Bytes and notes are those that were kept."""
    name = kernel_cache.cache_key("text")
    assert kernel_cache.lookup(name) is None
    assert not folder.exists()
    kernel_cache.save(name, CODE, META)
    found = kernel_cache.lookup(name)
    assert found is not None
    code, meta = found
    assert code == CODE
    assert META.items() <= meta.items()


def test_order_comes_back() -> None:
    """Sizes are listed in the order of a kernel's arguments, which is not that of the alphabet."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(
        name, CODE, {"inputs": {"q": 7, "v": 6, "tau": 6}, "outputs": {"w": 1, "a": 2}}
    )
    found = kernel_cache.lookup(name)
    assert found is not None
    assert list(found[1]["inputs"]) == ["q", "v", "tau"]
    assert list(found[1]["outputs"]) == ["w", "a"]


def test_key_depends_on_everything() -> None:
    """Text, processor, features, versions and format each change the name."""
    plain = TargetCpu("a", "+b")
    names = [
        kernel_cache.cache_key("x", plain),
        kernel_cache.cache_key("y", plain),
        kernel_cache.cache_key("x", TargetCpu("aa", "+b")),
        kernel_cache.cache_key("x", TargetCpu("a", "+bb")),
        kernel_cache.cache_key("x", TargetCpu("a+", "b")),
        kernel_cache.cache_key("x"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache, "llvm_versions", lambda: "llvmlite 0, LLVM 0")
        names.append(kernel_cache.cache_key("x", plain))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache, "FORMAT_VERSION", kernel_cache.FORMAT_VERSION + 1)
        names.append(kernel_cache.cache_key("x", plain))
    assert len(set(names)) == len(names)
    assert kernel_cache.cache_key("x", plain) == kernel_cache.cache_key(b"x", plain) == names[0]


@unix
def test_closed_to_others(folder: Path) -> None:
    """The folder is 0700 and files are 0600, whatever the umask."""
    before = os.umask(0)
    try:
        kernel_cache.save(kernel_cache.cache_key("text"), CODE, META)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in folder.iterdir()] == [0o600]


@pytest.mark.parametrize("size", [0, 5, 17, 25, 150, 300, -1])
def test_truncated_file_is_none(folder: Path, size: int) -> None:
    """A file cut anywhere is deleted, and the kernel can be kept anew."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    file = file_of(folder, name)
    file.write_bytes(file.read_bytes()[:size])
    assert kernel_cache.lookup(name) is None
    assert not file.exists()
    kernel_cache.save(name, CODE, META)
    assert kernel_cache.lookup(name) is not None


def test_any_changed_byte_is_noticed(folder: Path) -> None:
    """Magic, header, digest and code are all under the seal."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    file = file_of(folder, name)
    good = file.read_bytes()
    for place in range(0, len(good), 7):
        bad = bytearray(good)
        bad[place] ^= 0x10
        file.write_bytes(bytes(bad))
        assert kernel_cache.lookup(name) is None, place


def test_renamed_file_is_none(folder: Path) -> None:
    """A sound file under the name of another kernel is not that kernel."""
    name, other = kernel_cache.cache_key("text"), kernel_cache.cache_key("other")
    kernel_cache.save(name, CODE, META)
    file_of(folder, name).rename(file_of(folder, other))
    assert kernel_cache.lookup(other) is None


@unix
def test_a_pipe_in_the_place_of_a_file_is_none(folder: Path) -> None:
    """Nobody waits for what may come out of it."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    file_of(folder, name).unlink()
    os.mkfifo(file_of(folder, name))
    assert kernel_cache.entries()[0].meta == {}
    assert kernel_cache.lookup(name) is None
    assert not file_of(folder, name).exists()


@pytest.mark.parametrize("told", [b"[]", b"12", b"not JSON", b"\xff", b"{}", b'{"key": "other"}'])
def test_a_strange_header_is_none(folder: Path, told: bytes) -> None:
    """Also under a right seal."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    seal = hashlib.sha256(told + CODE).digest()
    file_of(folder, name).write_bytes(
        kernel_cache.MAGIC + len(told).to_bytes(4, "little") + told + seal + CODE
    )
    assert kernel_cache.entries()[0].meta in ({}, {"key": "other"})
    assert kernel_cache.lookup(name) is None
    assert not file_of(folder, name).exists()


def test_a_header_without_what_is_needed_is_none(folder: Path) -> None:
    """A kernel that cannot be run is made again."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, {"lanes": 4})
    assert kernel_cache.lookup(name, ("lanes",)) is not None
    assert kernel_cache.lookup(name, ("lanes", "workspace")) is None
    assert not file_of(folder, name).exists()


@unix
def test_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read and not written, and that is said once."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(CacheWarning, match="belongs to another user.*PHISTAR_CACHE"):
        assert kernel_cache.lookup(name) is None
    kernel_cache.save(kernel_cache.cache_key("more"), CODE, META)
    assert kernel_cache.entries() == []
    assert len(list(folder.iterdir())) == 1


@unix
def test_open_folder_is_refused(folder: Path) -> None:
    """A folder that others can write is not used, until it is closed."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    folder.chmod(0o770)
    with pytest.warns(CacheWarning, match="can be written by others"):
        assert kernel_cache.lookup(name) is None
    folder.chmod(0o700)
    assert kernel_cache.lookup(name) is not None


@unix
def test_links_and_open_files_are_not_followed(folder: Path, tmp_path: Path) -> None:
    """A link in place of the folder or a file, or a file that others can write, is not used."""
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    file = file_of(folder, name)
    file.chmod(0o666)
    assert kernel_cache.lookup(name) is None
    kernel_cache.save(name, CODE, META)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning, match="cannot be read"):
        assert kernel_cache.lookup(name) is None
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.warns(CacheWarning, match="is not a folder"):
        assert kernel_cache.lookup(name) is None


def test_file_in_the_way_is_said_once(tmp_path: Path) -> None:
    """Where no folder can be made, phistar goes on without."""
    (tmp_path / "cache").write_text("in the way")
    with pytest.warns(CacheWarning, match="compiled every time"):
        kernel_cache.save(kernel_cache.cache_key("text"), CODE, META)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel_cache.save(kernel_cache.cache_key("text"), CODE, META)
        assert kernel_cache.lookup(kernel_cache.cache_key("text")) is None


def test_full_disk_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails warns and leaves nothing behind."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(CacheWarning, match="No space left"):
        kernel_cache.save(kernel_cache.cache_key("text"), CODE, META)
    assert list(folder.iterdir()) == []


def test_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``PHISTAR_CACHE=off`` keeps nothing."""
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    name = kernel_cache.cache_key("text")
    kernel_cache.save(name, CODE, META)
    assert kernel_cache.lookup(name) is None
    assert (
        kernel_cache.folder_path(),
        kernel_cache.entries(),
        kernel_cache.total_bytes(),
        kernel_cache.clear(),
    ) == (
        None,
        [],
        0,
        0,
    )


def test_users_cache_folder_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PHISTAR_CACHE it is the platform's folder."""
    monkeypatch.delenv("PHISTAR_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "platform")
    assert kernel_cache.folder_path() == tmp_path / "platform" / "kernels"


def test_what_was_used_last_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, what was not used for the longest time goes first."""
    names = [kernel_cache.cache_key(f"{i}") for i in range(4)]
    for i, name in enumerate(names[:3]):
        kernel_cache.save(name, bytes(100_000), META)
        os.utime(file_of(folder, name), (0, 1000 + i))
    assert kernel_cache.lookup(names[0]) is not None
    monkeypatch.setenv("PHISTAR_CACHE_SIZE", "0.25")
    kernel_cache.save(names[3], bytes(100_000), META)
    assert {entry.key for entry in kernel_cache.entries()} == {names[0], names[3]}
    assert kernel_cache.total_bytes() <= 250_000
    kernel_cache.save(kernel_cache.cache_key("huge"), bytes(300_000), META)
    assert kernel_cache.lookup(kernel_cache.cache_key("huge")) is None


def test_files_are_looked_at_again_when_room_runs_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after each kernel, but before the limit is passed; the limit may change meanwhile."""
    looks: list[float] = []
    shrink = kernel_cache._shrink

    def counted(where: Path, most: float) -> float:
        looks.append(most)
        return shrink(where, most)

    monkeypatch.setattr(kernel_cache, "_shrink", counted)
    monkeypatch.setenv("PHISTAR_CACHE_SIZE", "1")
    for i in range(9):
        kernel_cache.save(kernel_cache.cache_key(f"{i}"), bytes(10_000), META)
        assert kernel_cache.total_bytes() <= 1e6
    assert len(looks) == 1
    for i in range(9, 200):
        kernel_cache.save(kernel_cache.cache_key(f"{i}"), bytes(10_000), META)
        assert kernel_cache.total_bytes() <= 1e6
    assert 10 < len(looks) < 200
    monkeypatch.setenv("PHISTAR_CACHE_SIZE", "0.1")
    kernel_cache.save(kernel_cache.cache_key("last"), bytes(10_000), META)
    assert kernel_cache.total_bytes() <= 1e5


def test_remains_are_swept(folder: Path) -> None:
    """Unfinished files of processes that died go; those of running ones and strange ones stay."""
    kernel_cache.save(kernel_cache.cache_key("0"), CODE, META)
    for name, age in ((".a.unfinished", 7200), (".b.unfinished", 10), ("note.txt", 7200)):
        (folder / name).write_text("x")
        os.utime(folder / name, (time.time() - age,) * 2)
    kernel_cache._seen_bytes.clear()  # as in another process
    kernel_cache.save(kernel_cache.cache_key("1"), CODE, META)
    assert not (folder / ".a.unfinished").exists()
    assert (folder / ".b.unfinished").exists()
    assert kernel_cache.clear() == 2
    assert [file.name for file in folder.iterdir()] == ["note.txt"]


@pytest.mark.parametrize("size", ["many", "-1", "nan", "inf"])
def test_bad_limit_is_refused(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that is no number of megabytes is an error, not a guess."""
    monkeypatch.setenv("PHISTAR_CACHE_SIZE", size)
    with pytest.raises(ArgumentError, match="PHISTAR_CACHE_SIZE"):
        kernel_cache.save(kernel_cache.cache_key("text"), CODE, META)


def test_entries_tell_damaged_files(folder: Path) -> None:
    """They are listed with an empty header, the last used first."""
    names = [kernel_cache.cache_key(f"{i}") for i in range(2)]
    for i, name in enumerate(names):
        kernel_cache.save(name, CODE, META)
        os.utime(file_of(folder, name), (0, 1000 + i))
    file_of(folder, names[1]).write_bytes(b"damaged")
    os.utime(file_of(folder, names[1]), (0, 1001))
    first, second = kernel_cache.entries()
    assert (first.key, first.meta, first.size) == (names[1], {}, 7)
    assert second.meta["name"] == META["name"]
    assert kernel_cache.total_bytes() == first.size + second.size


MANY = """
import sys
from phistar.backends.llvm.run import kernel_cache

wrong = 0
for i in range(60):
    code = bytes([i % 3]) * 50_000
    name = kernel_cache.cache_key(f"{i % 3}")
    found = kernel_cache.lookup(name)
    if found is None:
        kernel_cache.save(name, code, {"name": f"{i % 3}"})
    elif found[0] != code or found[1]["name"] != f"{i % 3}":
        wrong += 1
    if i % 20 == 19 and sys.argv[1] == "0":
        kernel_cache.clear()
print(wrong)
"""


def test_processes_at_the_same_time() -> None:
    """Four processes that keep, read, evict and clear the same kernels never see a broken one."""
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "PHISTAR_CACHE_SIZE": "0.11", "PYTHONPATH": path}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, f"{i}"], stdout=subprocess.PIPE, env=environment
        )
        for i in range(4)
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in processes] == [b"0"] * 4
    assert kernel_cache.total_bytes() <= 110_000
