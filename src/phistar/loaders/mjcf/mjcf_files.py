# SPDX-License-Identifier: BSD-3-Clause
"""The files an MJCF document refers to: includes, sub-models and meshes, all inside allowed roots.

MuJoCo gets everything as text or bytes under generated names, and never opens a file itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from phistar.errors import ModelError, Problem, UnsafeFileError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf.element_tree import Element, read_tree, render
from phistar.loaders.robot_source import MAX_BYTES, Source, check_size, read_source

MAX_DEPTH = 250
"""Deepest nesting of elements after includes; MuJoCo's parser is recursive."""
MAX_MODEL_DEPTH = 16
"""Deepest nesting of sub-models."""

MAX_TAGS = 50_000
"""Most ``<`` in all files together, counted before they are parsed."""

_INCLUDE_CURE = "Move it beside the main file, or pass its folder in roots=."


@dataclass(frozen=True)
class MeshFile:
    """A mesh file: its spelling in the document, and its path (None: outside the roots)."""

    spelling: str
    path: Path | None
    where: str

    @property
    def exists(self) -> bool:
        """Whether there is such a file, inside the roots."""
        return self.path is not None and self.path.is_file()


@dataclass
class ModelFiles:
    """A robot's documents with all includes in place.

    Attributes:
        main: Root of the main document.
        models: Roots of the sub-models, by the name given to MuJoCo.
        meshes: Mesh files, by the name given to MuJoCo.
    """

    main: Element
    models: dict[str, Element] = field(default_factory=dict)
    meshes: dict[str, MeshFile] = field(default_factory=dict)

    @property
    def documents(self) -> list[Element]:
        """All roots, the main one first."""
        return [self.main, *self.models.values()]

    def texts(self) -> tuple[str, dict[str, bytes], dict[int, Element]]:
        """The main text, the sub-models' texts by name, and the element on each line of them."""
        main, lines = render(self.main, 1)
        others: dict[str, bytes] = {}
        for name, root in self.models.items():
            text, more = render(root, len(lines) + 1)
            others[name] = text.encode()
            lines.update(more)
        return main, others, lines


def read_files(
    source: Source, roots: Sequence[Path] = (), report: LoadReport | None = None
) -> ModelFiles:
    """Read a document and everything it includes.

    Args:
        source: The main document.
        roots: Folders that may be read besides the one the document is in.
        report: Receives the warnings.

    Raises:
        ModelError: A file is missing, not XML, or included twice.
        UnsafeFileError: A DOCTYPE, a path outside the roots, too much data or too deep a nesting.
    """
    return _Gatherer(source, roots, report).collected(source)


@dataclass(frozen=True)
class _Level:
    """State of following includes.

    Attributes:
        folder, home: Folders of the current file and of the main one; None for bytes.
        chain: The files from the main one to the current one.
        visited: All files so far.
        depth: Depth of nested elements.
    """

    folder: Path | None
    home: Path | None
    chain: tuple[Path, ...]
    visited: set[Path]
    depth: int = 1

    def below(self) -> _Level:
        return replace(self, depth=self.depth + 1)


class _Gatherer:
    """Follows includes and sub-models from one main document."""

    def __init__(
        self, source: Source, roots: Sequence[Path], report: LoadReport | None = None
    ) -> None:
        self.report = report
        own_folders = [source.path.parent] if source.path is not None else []
        self.roots = [folder.resolve() for folder in (*own_folders, *roots)]
        self.size = self.tags = 0
        self.models: dict[str, Element] = {}
        self.meshes: dict[str, MeshFile] = {}
        self.known_models: dict[Path, str] = {}
        self.open_models: list[Path] = []

    def collected(self, source: Source) -> ModelFiles:
        self.count(source)
        main = read_tree(source, self.report)
        check_root(main, source)
        self.complete(main, source)
        return ModelFiles(main, self.models, self.meshes)

    def complete(self, root: Element, source: Source) -> None:
        """Put includes in place, then register the sub-models and meshes of one document."""
        home = source.path.parent if source.path is not None else None
        chain = (source.path.resolve(),) if source.path is not None else ()
        self.include(root, _Level(home, home, chain, set(chain)))
        mesh_folder, strip = _mesh_folder(root)
        for element in root.walk():
            if element.tag == "model" and "file" in element.attributes:
                self.add_model(element, home)
            elif element.tag == "mesh" and "file" in element.attributes:
                self.add_mesh(element, home, mesh_folder, strip)
            elif element.tag == "size" and element.parent is root:
                # Memory for MuJoCo's own simulation, which a file must not choose for us.
                element.attributes.clear()

    def include(self, element: Element, level: _Level) -> None:
        """Replace each <include> below ``element`` by the contents of its file."""
        if level.depth > MAX_DEPTH:
            what = f"elements nest deeper than {MAX_DEPTH} levels at {element.label}."
            raise _unsafe("too-deep", element, what, "Split the robot.")
        children: list[Element] = []
        for child in element.children:
            if child.tag == "include":
                children += self.included(child, level)
            else:
                self.include(child, level.below())
                children.append(child)
        for child in children:
            child.parent = element
        element.children = children

    def included(self, element: Element, level: _Level) -> list[Element]:
        """Contents of an <include>; like MuJoCo, looks beside its own file, then the main one."""
        path = self.find(element, [level.folder, level.home])
        if path in level.visited:
            cycle = path in level.chain
            reason = "is an include cycle" if cycle else "was included before"
            what = f'include "{element.get("file")}" {reason}.'
            raise _error("include-twice", element, what, "Include every file once.")
        if element.children:
            what = f'include "{element.get("file")}" has elements inside, which mean nothing.'
            raise _error("include-children", element, what, "Remove them.")
        level.visited.add(path)
        root = read_tree(self.read(path), self.report)
        chain = (*level.chain, path)
        self.include(root, replace(level.below(), folder=path.parent, chain=chain))
        return root.children

    def add_model(self, element: Element, home: Path | None) -> None:
        """Register the file of <asset><model> under a generated name."""
        path = self.find(element, [home])
        if path in self.open_models or len(self.open_models) >= MAX_MODEL_DEPTH:
            what = f'model "{element.get("file")}" contains itself, or models nest too deep.'
            raise _error("model-cycle", element, what, "Break the cycle of models.")
        if path not in self.known_models:
            self.known_models[path] = self.read_model(path)
        element.attributes["file"] = self.known_models[path]

    def read_model(self, path: Path) -> str:
        source = self.read(path)
        root = read_tree(source, self.report)
        check_root(root, source)
        self.open_models.append(path)
        self.complete(root, source)
        self.open_models.pop()
        name = f"phistar_model_{len(self.models)}.xml"
        self.models[name] = root
        return name

    def add_mesh(self, element: Element, home: Path | None, folder: str, strip: bool) -> None:
        """Register a mesh file under a generated name; nothing is opened here."""
        spelling = element.get("file")
        bare = spelling.replace("\\", "/")
        element.attributes.setdefault("name", PurePosixPath(bare).stem)
        relative = PurePosixPath(folder) / (PurePosixPath(bare).name if strip else bare)
        path = self.allowed(home / relative) if home is not None else None
        name = f"phistar_mesh_{len(self.meshes)}{PurePosixPath(bare).suffix}"
        self.meshes[name] = MeshFile(spelling, path, element.where)
        element.attributes["file"] = name

    def find(self, element: Element, folders: Sequence[Path | None]) -> Path:
        """The existing file that an include or sub-model means."""
        spelling = element.get("file")
        if not spelling:
            raise _error("no-file", element, f"{element.label} has no file.", "Name the file.")
        starts = list(dict.fromkeys(f for f in folders if f is not None)) or self.roots
        allowed_paths = [path for start in starts if (path := self.allowed(start / spelling))]
        if not allowed_paths:
            what = f'{element.tag} "{spelling}" is outside the folders that may be read.'
            if not self.roots:
                what = f'{element.tag} "{spelling}": a document given as bytes has no folder.'
            raise _unsafe("outside-path", element, what, _INCLUDE_CURE)
        for path in allowed_paths:
            if path.is_file():
                return path
        what = f'{element.tag} "{spelling}": no such file.'
        raise _error("missing-file", element, what, "Check the name.")

    def allowed(self, path: Path) -> Path | None:
        """``path`` with links followed, or None if that leaves the roots."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return None
        return real if any(real.is_relative_to(root) for root in self.roots) else None

    def read(self, path: Path) -> Source:
        source = read_source(path)
        self.count(source)
        return source

    def count(self, source: Source) -> None:
        """Enforce the limits for all files together."""
        self.size += len(source.data)
        self.tags += source.data.count(b"<")
        check_size(self.size, source.name, MAX_BYTES)
        if self.tags > MAX_TAGS:
            what = f"{self.tags} tags are more than the limit of {MAX_TAGS}."
            problem = Problem("error", "too-big", source.name, what, "Split the robot.")
            raise UnsafeFileError([problem])


def check_root(root: Element, source: Source) -> None:
    """Reject documents that are not MJCF."""
    if root.tag == "mujoco":
        return
    what = f"the root element is <{root.tag}>, an MJCF document starts with <mujoco>."
    cure = "This is a URDF file." if root.tag == "robot" else "Is this the right file?"
    raise ModelError([Problem("error", "wrong-root", source.at(None), what, cure)])


def _mesh_folder(root: Element) -> tuple[str, bool]:
    """The document's folder of meshes and whether folders in file names are dropped.

    The attributes are removed: MuJoCo gets generated names only.
    """
    folder, strip = "", False
    for element in root.walk():
        if element.tag == "compiler":
            folder = element.attributes.pop("assetdir", folder)
            folder = element.attributes.pop("meshdir", folder)
            strip = element.attributes.pop("strippath", str(strip).lower()) == "true"
    return folder, strip


def _error(code: str, element: Element, what: str, cure: str) -> ModelError:
    return ModelError([Problem("error", code, element.where, what, cure)])


def _unsafe(code: str, element: Element, what: str, cure: str) -> UnsafeFileError:
    return UnsafeFileError([Problem("error", code, element.where, what, cure)])
