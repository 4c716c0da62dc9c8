# SPDX-License-Identifier: BSD-3-Clause
"""Texts without names, differences and decisions of the process replay."""

import pytest

import phistar
from tools import internals, replay

LLVM = """
declare double @outside(double)
@table = private constant [1 x double] [double 0x1]
define double @kernel(double %a) { ; what it is
entry:
  %sum = fadd double %a, %a
  br label %done
done:
  %b = call double @outside(double %sum)
  %c = call double @llvm.sqrt.f64(double %b)
  ret double %c
}
define double @other(double %a) {
  ret double %a
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("%sum", "%total"), ("@kernel", "@main"), ("done", "finish"), ("; what it is", "")],
)
def test_names_of_llvm_symbols_do_not_matter(old: str, new: str) -> None:
    """Locals, functions, labels and comments may change."""
    changed = LLVM.replace(old, new)
    assert changed != LLVM
    assert replay.numbered_llvm(changed) == replay.numbered_llvm(LLVM)


def test_names_are_those_of_their_function() -> None:
    """A local that is renamed in one of two functions is still the same text."""
    head, tail = LLVM.split("define double @other")
    changed = f"{head}define double @other{tail.replace('%a', '%x')}"
    assert replay.numbered_llvm(changed) == replay.numbered_llvm(LLVM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fadd", "fsub"),
        ("%a, %a", "%a, 0.0"),
        ("llvm.sqrt", "llvm.sin"),
        ("@outside", "@elsewhere"),
        ("0x1", "0x2"),
    ],
)
def test_other_code_is_another_text(old: str, new: str) -> None:
    """Operations, operands, constants, intrinsics and names from outside must stay."""
    assert replay.numbered_llvm(LLVM.replace(old, new)) != replay.numbered_llvm(LLVM)


def test_names_of_c_identifiers_do_not_matter() -> None:
    """Identifiers, comments and line breaks may change; functions of C and numbers may not."""
    text = "/* a */ double f(double x) {\n    return sin(x) * 2.5e-3; }"
    expected = replay.numbered_c(text)
    assert replay.numbered_c("double g(double y) { return sin(y) * 2.5e-3; }") == expected
    assert replay.numbered_c(text.replace("sin", "cos")) != expected
    assert replay.numbered_c(text.replace("2.5e-3", "2.5e-4")) != expected


def test_differences_name_what_changed() -> None:
    """Texts, counts by kind, decisions, and items on one side; partial items may be missing."""
    before = {
        "a: x": {"text": "1", "operations": {"add": 3, "mul": 2}},
        "a: y": "looped",
        "a: z": "looped",
        "a: partial": "walks",
        "a: same": "looped",
    }
    after = {
        "a: x": {"text": "2", "operations": {"add": 4, "mul": 2}},
        "a: y": "unrolled",
        "a: same": "looped",
    }
    assert replay.differences(before, after, ("partial",)) == [
        "a: x: text differs; add 3 -> 4",
        "a: y: looped -> unrolled",
        "a: z: no longer there",
    ]


def test_programs_of_a_small_robot() -> None:
    """Every kind of program is made, has a text and operations; made twice it is the same."""
    robot = phistar.load("double_pendulum")
    found = dict(replay.programs("double_pendulum", robot))
    for part in ("looped", "unrolled", "forces", "fused", "jacobian", "update rk4"):
        assert any(part in what for what in found), part
    for what in ("inverse_dynamics, looped", "mass_matrix, unrolled"):
        item = replay._item(found[what], single=True)
        assert item == replay._item(found[what], single=True)
        assert item["operations"]["arithmetic"] > 0
        assert item["text"] != item["text, float32"]


def test_decisions_of_a_small_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled; short programs are unrolled at once, and strategies have names."""
    monkeypatch.setenv("PHISTAR_TIER", "auto")
    # Equal robots share what is compiled; with this gravity there is no other one.
    robot = phistar.load("double_pendulum", gravity=(0.0, 0.0, -9.7))
    found = {what: replay.decision(act) for what, act in replay.calls(robot)}
    assert found["inverse_dynamics"] == found["linearize"] == "unrolled, now"
    chosen = {what: choose() for what, choose in internals.strategies(robot.model).items()}
    assert chosen["linearize, fused"] == "yes"
    assert chosen["simulate"] == "machine code"
