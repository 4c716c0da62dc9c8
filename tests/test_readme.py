# SPDX-License-Identifier: BSD-3-Clause
"""What the README shows must run."""

import re

import pytest

from phistar import Robot
from phistar.compile import kernel
from tests.helpers import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("source", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs(source: str) -> None:
    """An example runs as it is printed, and its shapes are those its comments name."""
    names: dict[str, object] = {}
    exec(compile(source, "README.md", "exec"), names)
    robot = next(value for value in names.values() if isinstance(value, Robot))
    sizes = {key: getattr(robot, key) for key in ("nq", "nv")}
    for name, shape in re.findall(r"^(\w+) = .*# \(([\w, ]+)\)", source, re.MULTILINE):
        expected = tuple(sizes.get(n) or int(n) for n in re.findall(r"\w+", shape))
        assert names[name].shape == expected, name


def test_there_is_an_example() -> None:
    """The README has a Python example for the test above to run."""
    assert EXAMPLES


def test_printed_sweeps_are_those_of_the_compiler() -> None:
    """The articulated-body sweeps in the README are what its example prints."""
    (block,) = re.findall(r"^```text\n(.*?)\n```", TEXT, re.MULTILINE | re.DOTALL)
    assert block == kernel("forward_dynamics").sweeps
