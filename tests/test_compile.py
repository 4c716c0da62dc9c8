# SPDX-License-Identifier: BSD-3-Clause
"""The compiler: its passes in order, what each leaves, and what is kept."""

import weakref

import numpy as np
import pytest

from phistar import backends
from phistar.algebra.symbols import D, H, f_ext, mass_matrix, phi, psi, tau, v, vdot
from phistar.algorithms.programs import PROGRAMS
from phistar.backends import base
from phistar.backends.to_llvm import MachineCode
from phistar.backends.to_numpy import NumpyCode
from phistar.backends.to_sweeps import InterpretedCode
from phistar.compile import LEVELS, PASSES, Stage, compile_outputs, kernel
from phistar.errors import LoweringError, UnknownNameError
from phistar.model.configuration import random_configuration
from phistar.model.generators import chain
from phistar.model.random import random_model
from phistar.sweeps.prune import prune


def test_passes_go_down_the_levels() -> None:
    """The order is pinned; no pass goes back up; each says what it does."""
    names = ["check", "derive", "lower", "prune", "schedule", "trace", "emit"]
    assert [p.name for p in PASSES] == names
    depth = [LEVELS.index(p.level) for p in PASSES]
    assert depth == sorted(depth)
    assert all(p.doc for p in PASSES)


def test_every_pass_can_be_looked_at() -> None:
    """Before and after, as text: expressions, streams, sweeps."""
    compiled = compile_outputs("shown", (("tau", mass_matrix @ vdot),))
    assert [(s.name, s.level) for s in compiled.passes] == [(p.name, p.level) for p in PASSES[:-2]]
    text = {stage.name: stage.text for stage in compiled.passes}
    assert text["check"] == "tau = 𝓜 v̇"
    assert "= shift_in %" in text["lower"]
    assert text["schedule"] == compiled.sweeps
    shown = compiled.trace.splitlines()
    assert shown[0] == "check -> expressions"
    assert shown[1] == "    tau = 𝓜 v̇"
    assert [line for line in shown if not line.startswith(" ")] == [
        f"{p.name} -> {p.level}" for p in PASSES[:-2]
    ]
    assert str(Stage("a", "b", "c\nd")) == "a -> b\n    c\n    d"


def test_lets_are_shown_with_their_values() -> None:
    """An expression stage lists what its names stand for."""
    text = kernel("forward_dynamics").passes[0].text
    assert any(line.startswith("V = ") for line in text.splitlines()[1:])


def test_inverses_are_derived() -> None:
    """𝓜⁻¹ has no sweep form; the derive pass finds one, with the numbers of a dense solve."""
    compiled = compile_outputs("inverse", (("vdot", mass_matrix.inv @ (tau - H @ phi @ f_ext)),))
    text = {stage.name: stage.text for stage in compiled.passes}
    assert "𝓜⁻¹" in text["check"]
    assert "𝓜" not in text["derive"]
    rng = np.random.default_rng(0)
    model = random_model(rng, 6, armature=0.5)
    q, count = random_configuration(model, rng), len(model.bodies)
    size = sum(body.joint_kind.nv for body in model.bodies)
    given = {"tau": rng.normal(size=size), "f_ext": rng.normal(size=(count, 6))}
    columns = [
        kernel("mass_matrix_times")(model, q, {"vdot": unit})["tau"] for unit in np.eye(size)
    ]
    load = kernel("generalised_force")(model, q, {"f_ext": given["f_ext"]})["tau"]
    expected = np.linalg.solve(np.array(columns), given["tau"] - load)
    assert np.allclose(compiled(model, q, given)["vdot"], expected, rtol=1e-9, atol=1e-9)


def test_what_has_a_sweep_form_is_left_as_written() -> None:
    """The catalogue's programs pass through derive unchanged."""
    for name in PROGRAMS:
        text = [stage.text for stage in kernel(name).passes[:2]]
        assert text[0] == text[1]


def test_dead_streams_are_removed() -> None:
    """Lowering leaves streams that sums have absorbed; after prune every stream is needed."""
    compiled = kernel("forward_dynamics")
    after = {each.name: value for each, value in compiled.after}
    before, pruned = after["lower"].program, after["prune"].program
    assert before is not None
    assert pruned is not None
    assert len(pruned.nodes) < len(before.nodes)
    assert list(pruned.live()) == list(range(len(pruned.nodes)))
    assert prune(pruned).nodes == pruned.nodes
    assert compiled.schedule.program is pruned


def test_kernels_are_made_once() -> None:
    """The same outputs give the same object."""
    outputs = (("out", psi.T @ H.T @ D.inv @ v),)
    assert compile_outputs("own", outputs) is compile_outputs("own", outputs)
    assert kernel("bias_force") is kernel("bias_force")


def test_executables_are_made_once_per_robot_and_backend() -> None:
    """Equal robots share one; another robot, backend, frame or lock has its own."""
    compiled = kernel("link_velocities")
    model = chain(3)
    first = compiled.executable(model, backend="numpy")
    assert compiled.executable(chain(3), backend="numpy") is first
    others = [
        compiled.executable(chain(4), backend="numpy"),
        compiled.executable(chain(3), backend="sweeps"),
        compiled.executable(chain(3), ("link1",), backend="numpy"),
        compiled.executable(chain(3), locked={1}, backend="numpy"),
    ]
    assert len({id(each) for each in (first, *others)}) == 5
    assert isinstance(first, NumpyCode)
    assert isinstance(others[1], InterpretedCode)


def test_executables_go_with_their_robot() -> None:
    """A robot does not stay alive for what was compiled for it, nor the other way round."""
    compiled = kernel("link_velocities")
    model = chain(2, name="forgotten")
    executable = compiled.executable(model, backend="sweeps")
    robot, code = weakref.ref(model), weakref.ref(executable)
    del model
    assert robot() is None
    assert executable([0.1, 0.2], {"v": [0.3, 0.4]})["V"].shape == (2, 6)
    del executable
    assert code() is None


def test_default_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code, unless the environment says otherwise when the first robot asks.

    It is read once, so that no method obeys a change that others do not see; a wrong name is an
    error when it is used.
    """
    monkeypatch.setattr(base, "_default_name", None)
    monkeypatch.delenv("PHISTAR_BACKEND", raising=False)
    compiled, model = kernel("link_velocities"), chain(2)
    assert backends.default() == "llvm"
    assert isinstance(compiled.executable(model), MachineCode)
    monkeypatch.setenv("PHISTAR_BACKEND", "sweeps")
    assert isinstance(compiled.executable(model), MachineCode)
    monkeypatch.setattr(base, "_default_name", None)
    assert isinstance(compiled.executable(model), InterpretedCode)
    monkeypatch.setattr(base, "_default_name", "sweep")
    with pytest.raises(UnknownNameError, match="'sweeps'"):
        compiled(model, np.zeros(2), {"v": np.zeros(2)})


def test_what_cannot_be_compiled_says_so() -> None:
    """No output, an operator, an inverse without a form, an unknown name."""
    with pytest.raises(LoweringError, match="no output"):
        compile_outputs("none", ())
    with pytest.raises(LoweringError, match="'out' is an operator"):
        compile_outputs("operator", (("out", mass_matrix),))
    with pytest.raises(LoweringError):
        compile_outputs("inverse", (("out", (phi.T @ H.T @ H @ phi).inv @ psi.T @ H.T @ v),))
    with pytest.raises(UnknownNameError, match="forward_dynamics"):
        kernel("forward_dynamic")
