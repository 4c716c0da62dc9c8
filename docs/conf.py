# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx configuration. Built by ``make docs`` with warnings as errors."""

import logging
import os
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import example_pages  # noqa: E402
import papers_page  # noqa: E402
import pictures  # noqa: E402
import registry  # noqa: E402
import speed_plots  # noqa: E402

# What is compiled and executed on the way is no news here.
for name in ("phistar", "traitlets"):
    logging.getLogger(name).setLevel(logging.WARNING)

project = "phistar"
author = "phistar developers"
project_copyright = "2026, phistar developers"
version = release = installed_version("phistar")

extensions = [
    "gallery",
    "mathml",
    "narrow_tables",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "phistar"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_math_renderer = "mathml"

myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Coordinates", "Forces")}
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


TAGS, QUOTE = r"((?:<[^>]*>)*)", "(?:['\u2018\u2019]|&#39;)"
ALIAS = re.compile(rf"TypeAliasForwardRef{TAGS}\({TAGS}{QUOTE}(\w+){QUOTE}{TAGS}\)")


def spell_aliases(_app: Any, _page: str, _template: str, context: Any, _tree: Any) -> None:
    """Autodoc spells an alias inside of a union as a call; leave its name."""
    if "body" in context:
        context["body"] = ALIAS.sub(r"\1\2\3\4", context["body"])


def configure_kernels(folder: Path) -> None:
    """Let cells run without a user's settings of IPython, and without its history and remarks."""
    profile = folder / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    quiet = "c.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n"
    (profile / "ipython_kernel_config.py").write_text(quiet, encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(folder)


def setup(app: Any) -> None:
    """Write the generated pages, draw pictures, connect the hooks, one before napoleon's (500)."""
    configure_kernels(HERE / "_generated" / "ipython")
    registry.write(HERE / "_generated")
    pictures.draw(HERE / "_generated" / "pictures")
    example_pages.write(HERE / "_generated" / "examples")
    speed_plots.draw(HERE / "_generated" / "speed")
    app.connect("source-read", locate_names)
    # Lines move without the page being touched.
    app.connect("env-get-outdated", lambda *_: ["papers"])
    app.connect("html-page-context", spell_aliases)
    app.connect("autodoc-process-docstring", escape_mathematics, priority=400)
