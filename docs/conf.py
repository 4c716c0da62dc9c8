# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx configuration. Built by ``make docs`` with warnings as errors."""

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import papers_page  # noqa: E402
import registry  # noqa: E402

project = "phistar"
author = "phistar developers"
project_copyright = "2026, phistar developers"
version = release = installed_version("phistar")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "phistar"
html_show_sourcelink = False

myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
# "Attributes:" sections describe the fields that autodoc lists anyway.
napoleon_use_ivar = True


def escape_mathematics(
    _app: Any, _what: str, _name: str, _obj: Any, _opt: Any, lines: list[str]
) -> None:
    """Let docstrings be plain text with ``literals``: H* and |q| are mathematics, not markup."""
    literal_block = False
    for i, line in enumerate(lines):
        indented = line.startswith(" ") or not line
        literal_block = literal_block and indented
        if not literal_block and not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(``.*?``)", line)
            parts[::2] = [re.sub(r"[*|]", r"\\\g<0>", text) for text in parts[::2]]
            lines[i] = "".join(parts)
        literal_block = literal_block or line.endswith("::")


def locate_names(_app: Any, page: str, source: list[str]) -> None:
    """Add file and line to the names on the page of papers."""
    if page == "papers":
        source[0] = papers_page.located(source[0])


def setup(app: Any) -> None:
    """Write the pages of the registries and connect the hooks, one before napoleon's (500)."""
    registry.write(HERE / "_generated")
    app.connect("source-read", locate_names)
    # Lines move without the page being touched.
    app.connect("env-get-outdated", lambda *_: ["papers"])
    app.connect("autodoc-process-docstring", escape_mathematics, priority=400)
