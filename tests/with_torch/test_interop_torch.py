# SPDX-License-Identifier: BSD-3-Clause
"""A robot in PyTorch: values, both modes, double backward, maps, compiled graphs, processes."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import phistar
from phistar.errors import (
    ArgumentError,
    MissingExtraError,
    PackageVersionError,
    ShapeError,
    SingularHingeError,
)
from phistar.interop import torch as pt
from phistar.interop.quantities import QUANTITIES, calculation
from phistar.model.singular import singular_hinges
from tests import interop_cases as cases
from tests.helpers import needs_shared
from tests.interop_cases import LOOPED, SHARED_ROBOTS, TREES, close

NAMES = [*TREES, "mixed", *(pytest.param(x, marks=needs_shared) for x in SHARED_ROBOTS)]
WARNED = "ignore::phistar.errors.PhistarWarning"
# PyTorch warns of parts of itself that it uses.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def panda() -> phistar.Robot:
    """Seven hinges."""
    return phistar.load("panda")


@pytest.fixture(scope="module")
def pendulum() -> phistar.Robot:
    """Two hinges."""
    return phistar.load("double_pendulum")


def _tensors(arrays, grad: bool = False) -> list[torch.Tensor]:
    return [torch.from_numpy(np.array(x)).requires_grad_(grad) for x in arrays]


# -- every robot


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", NAMES)
def test_dynamics_of_every_robot(name: str) -> None:
    """Values as of the robot; backward and forward mode as its linearization, 1e-9."""
    robot = cases.load(name)
    wrapped = pt.wrap(robot)
    q, v, x = cases.state(robot, (3,), seed=4)
    rng = np.random.default_rng(5)
    along, w = rng.normal(size=(3, 3, robot.nv)), rng.normal(size=(3, robot.nv))
    at = robot.linearize_inverse(q, v, x)
    _agrees(robot, wrapped.inverse_dynamics, (q, v, x), along, w, at.tau,
            [at.tau_q, at.tau_v, at.tau_vdot])  # fmt: skip
    try:
        on = robot.linearize(q, v, x)
    except SingularHingeError:
        with pytest.raises(SingularHingeError):
            wrapped.forward_dynamics(q, v, x)
        return
    _agrees(robot, wrapped.forward_dynamics, (q, v, x), along, w, on.vdot,
            [on.vdot_q, on.vdot_v, on.vdot_tau])  # fmt: skip


def _agrees(robot, function, arrays, along, w, value, matrices) -> None:
    tensors = _tensors(arrays, grad=True)
    result = function(*tensors)
    close(result.detach(), value, 1e-9)
    back = torch.autograd.grad(result, tensors, torch.from_numpy(w))
    q = arrays[0]
    seen = [cases.coordinate_rates(robot, q, np.tile(e, (len(q), 1))) for e in np.eye(robot.nv)]
    gradient = np.stack([(back[0].numpy() * s).sum(-1) for s in seen], -1)
    for ours, matrix in zip((gradient, back[1], back[2]), matrices, strict=True):
        close(ours, (w[..., None, :] @ matrix)[..., 0, :], 1e-9)
    rates = [cases.coordinate_rates(robot, q, along[0]), along[1], along[2]]
    _, change = torch.func.jvp(function, tuple(_tensors(arrays)), tuple(_tensors(rates)))
    expected = sum((m @ d[..., None])[..., 0] for m, d in zip(matrices, along, strict=True))
    close(change, expected, 1e-9)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", LOOPED)
def test_dynamics_on_loops(name: str) -> None:
    """Forward dynamics and its derivatives are those of the robot."""
    robot = phistar.load(name)
    wrapped = pt.wrap(robot)
    q = robot.assemble(robot.neutral())
    v, tau = np.zeros(robot.nv), np.random.default_rng(0).normal(size=robot.nv)
    tensors = _tensors((q, v, tau))
    close(wrapped.forward_dynamics(*tensors), robot.forward_dynamics(q, v, tau), 1e-9)
    found = torch.func.jacrev(wrapped.forward_dynamics, (1, 2))(*tensors)
    at = robot.linearize(q, v, tau)
    close(found[0], at.vdot_v, 1e-9)
    close(found[1], at.vdot_tau, 1e-9)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_second_derivatives_on_loops(name: str) -> None:
    """Both ways twice: gradients change along curves on the loops as by differences, 1e-7."""
    robot = phistar.load(name)
    wrapped = pt.wrap(robot)
    curve, w = cases.on_loops(robot, 2)

    def gradient(*tensors):
        (weights,) = _tensors([w])
        result = wrapped.forward_dynamics(*tensors)
        return torch.autograd.grad(result, tensors, weights, create_graph=True)

    def by_gradient(t: float) -> list:
        return [x.detach().numpy() for x in gradient(*_tensors(curve(t), grad=True))]

    slopes = cases.slope_at_zero(by_gradient)
    rates = cases.slope_at_zero(curve)
    # Backward twice is the adjoint of the gradient's change.
    tensors = _tensors(curve(0.0), grad=True)
    rng = np.random.default_rng(3)
    c = [rng.normal(size=x.shape) for x in slopes]
    found = gradient(*tensors)
    total = sum((g * torch.from_numpy(x)).sum() for g, x in zip(found, c, strict=True))
    back = torch.autograd.grad(total, tensors)
    left = sum((g.numpy() * x).sum() for g, x in zip(back, rates, strict=True))
    right = sum((a * b).sum() for a, b in zip(slopes, c, strict=True))
    assert abs(left - right) < 1e-7 * max(
        np.abs(a * b).sum() for a, b in zip(slopes, c, strict=True)
    )

    along = tuple(_tensors(rates))

    def slope(*x):
        return torch.func.jvp(wrapped.forward_dynamics, x, along)[1]

    _, bent = torch.func.jvp(slope, tuple(_tensors(curve(0.0))), along)
    again = cases.slope_at_zero(lambda t: [slope(*_tensors(curve(t))).numpy()])
    close(bent, again[0], 1e-7)
    hessian = torch.func.hessian(lambda v: wrapped.forward_dynamics(state[0], v, state[2]).sum())
    state = _tensors([x[0] for x in curve(0.0)])
    close(hessian(state[1]), robot.forward_dynamics_second(*curve(0.0)).vv[0].sum(0), 1e-9)


@pytest.mark.filterwarnings(WARNED)
def test_curves_on_loops_bend_as_values_do() -> None:
    """Backward twice along a curve on loops whose rows depend on each other: differences of
    accelerations alone, 1e-6."""
    robot = cases.looped("bricard")
    wrapped = pt.wrap(robot)
    curve, w = cases.on_loops(robot, 2)
    turns = [cases.bend_at_zero(lambda t, k=k: curve(t)[k]) for k in range(3)]
    parts = list(zip(*map(_tensors, (curve(0.0), cases.slope_at_zero(curve), turns)), strict=True))
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    state = [a + t * b + 0.5 * t * t * c for a, b, c in parts]
    value = (wrapped.forward_dynamics(*state) * torch.from_numpy(w)).sum()
    (slope,) = torch.autograd.grad(value, t, create_graph=True)
    (bend,) = torch.autograd.grad(slope, t)
    expected = cases.bend_at_zero(lambda t: (robot.forward_dynamics(*curve(t)) * w).sum())
    close(bend, expected, 1e-6)


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_quantity(quantity: str) -> None:
    """On a floating tree of many joints: values (1e-10), both modes as by differences (1e-7)."""
    robot = cases.mixed()
    wrapped = pt.wrap(robot)
    arrays, choices = cases.arguments(robot, quantity, (2,))
    made = calculation(robot, quantity, **choices)
    along = cases.directions(robot, arrays)
    rates = [
        cases.coordinate_rates(robot, x, along[n]) if n in ("q", "q0", "q1") else along[n]
        for n, x in arrays.items()
    ]

    def call(*x):
        return tuple(wrapped.field.call(quantity, *x, **choices))

    given = tuple(_tensors(arrays.values()))
    values, changes = torch.func.jvp(call, given, tuple(_tensors(rates)))
    differences = cases.change(made.run, robot, arrays, along)
    for ours, theirs, slope, by_steps in zip(
        values, made.run(*arrays.values()), changes, differences, strict=True
    ):
        close(ours, theirs, 1e-10)
        close(slope, by_steps, 1e-7)
    # Backward is the adjoint of forward.
    tensors = _tensors(arrays.values(), grad=True)
    results = call(*tensors)
    weights = [
        torch.randn(x.shape, dtype=x.dtype, generator=_seeded(i)) for i, x in enumerate(results)
    ]
    total = sum((x * w).sum() for x, w in zip(results, weights, strict=True))
    back = torch.autograd.grad(total, tensors, allow_unused=True)
    left = sum((g * torch.from_numpy(d)).sum() for g, d in zip(back, rates, strict=True)
               if g is not None)  # fmt: skip
    right = sum((c * w).sum() for c, w in zip(changes, weights, strict=True))
    close(left, right, 1e-9)


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# -- PyTorch's own checks


@pytest.mark.parametrize("name", ["double_pendulum", "mixed", "panda_hand"])
def test_gradcheck(name: str) -> None:
    """``gradcheck`` (both modes) and ``gradgradcheck``; q moves on its manifold."""
    robot = cases.load(name)
    wrapped = pt.wrap(robot)
    q, v, x = _tensors(cases.state(robot, seed=3))
    start = torch.full((robot.nv,), 0.1, dtype=torch.float64, requires_grad=True)
    v.requires_grad_(), x.requires_grad_()

    def inverse(dq, v, x):
        return wrapped.inverse_dynamics(wrapped.integrate(q, dq), v, x)

    def forward(dq, v, x):
        return wrapped.forward_dynamics(wrapped.integrate(q, dq), v, x)

    for function in (inverse, forward):
        assert gradcheck(function, (start, v, x), check_forward_ad=True)
        assert gradgradcheck(function, (start, v, x))


@pytest.mark.filterwarnings(WARNED)
@pytest.mark.parametrize("name", NAMES)
def test_gradcheck_of_every_robot(name: str) -> None:
    """The same along random directions, which is quick for large robots, too; where a joint moves
    no inertia, inverse dynamics alone."""
    robot = cases.load(name)
    wrapped = pt.wrap(robot)
    q, v, x = _tensors(cases.state(robot, seed=4))
    start = torch.full((robot.nv,), 0.1, dtype=torch.float64, requires_grad=True)
    v.requires_grad_(), x.requires_grad_()

    quantities = [wrapped.inverse_dynamics]
    if not singular_hinges(robot.model):
        quantities.append(wrapped.forward_dynamics)
    for quantity in quantities:
        size = float(quantity(q, v, x).detach().abs().max()) or 1.0  # links may have no mass

        def function(dq, v, x, quantity=quantity, size=size):
            return quantity(wrapped.integrate(q, dq), v, x) / size

        tolerances = {"atol": 1e-5, "rtol": 1e-5, "fast_mode": True}
        assert gradcheck(function, (start, v, x), **tolerances)
        assert gradgradcheck(function, (start, v, x), **tolerances)


def test_gradcheck_of_kinematics(pendulum) -> None:
    """Traced quantities, twice."""
    wrapped = pt.wrap(pendulum)
    frame = pendulum.frame_names[-1]
    (q,) = _tensors(cases.state(pendulum)[:1], grad=True)
    assert gradcheck(lambda q: wrapped.frame_pose(q, frame), (q,), check_forward_ad=True)
    assert gradgradcheck(lambda q: wrapped.frame_pose(q, frame), (q,))
    assert gradgradcheck(wrapped.mass_matrix, (q,))


def test_gradients_on_quaternions() -> None:
    """With respect to the numbers of q: nothing along a quaternion, ours along tangents."""
    robot = phistar.load("quadruped")
    wrapped = pt.wrap(robot)
    q, v, tau = cases.state(robot)
    (at,) = _tensors([q], grad=True)
    w = np.random.default_rng(1).normal(size=robot.nv)
    result = wrapped.forward_dynamics(at, *_tensors([v, tau])) @ torch.from_numpy(w)
    (gradient,) = torch.autograd.grad(result, at)
    assert abs(gradient[3:7].numpy() @ q[3:7]) < 1e-9 * np.abs(gradient.numpy()).max()
    ours = robot.vjp("forward_dynamics", q, v, tau, w)["q"]
    for k in range(robot.nv):
        e = np.eye(robot.nv)[k]
        step = cases.coordinate_rates(robot, q, e)
        assert abs(gradient.numpy() @ step - ours[k]) < 1e-9 * np.abs(ours).max()
        h = 1e-6
        ahead, behind = (robot.forward_dynamics(robot.integrate(q, s * h * e), v, tau) @ w
                         for s in (1, -1))  # fmt: skip
        assert abs((ahead - behind) / (2 * h) - ours[k]) < 1e-5 * np.abs(ours).max()


def test_functional_transforms(panda) -> None:
    """``torch.func``: jacrev, jacfwd, vmap (nested), hessian, vmap of grad."""
    wrapped = pt.wrap(panda)
    arrays = cases.state(panda)
    at = panda.linearize(*arrays)
    tensors = tuple(_tensors(arrays))
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        found = jacobian(wrapped.forward_dynamics, (0, 1, 2))(*tensors)
        for ours, theirs in zip(found, (at.vdot_q, at.vdot_v, at.vdot_tau), strict=True):
            close(ours, theirs, 1e-9)
    second = panda.forward_dynamics_second(*arrays)
    hessian = torch.func.hessian(lambda q: wrapped.forward_dynamics(q, *tensors[1:]).sum())
    close(hessian(tensors[0]), second.qq.sum(0), 1e-9)
    q, v, tau = _tensors(cases.state(panda, (3, 4)))
    mapped = torch.func.vmap(torch.func.vmap(wrapped.forward_dynamics, (0, None, 0)), (0, None, 0))
    close(mapped(q, v[0, 0], tau), panda.forward_dynamics(q, v[0, 0].numpy(), tau.numpy()), 1e-9)
    each = torch.func.vmap(torch.func.grad(lambda q: wrapped.potential_energy(q)))
    close(each(q[0]), panda.gravity_force(q[0].numpy()), 1e-9)


def test_the_older_map_is_refused(pendulum) -> None:
    """``vectorize=True`` of ``torch.autograd``: the error names what does that."""
    wrapped = pt.wrap(pendulum)
    q, v, tau = _tensors(cases.state(pendulum))
    with pytest.raises(ArgumentError, match=r"vectorize=True.*torch\.func\.vmap, jacrev"):
        torch.autograd.functional.jacobian(
            lambda q: wrapped.forward_dynamics(q, v, tau), q, vectorize=True
        )


# -- compiled graphs


@pytest.mark.filterwarnings("ignore")
def test_compiled_without_a_graph_break(pendulum) -> None:
    """``torch.compile(fullgraph=True)``: value and gradient, with choices and a step."""
    wrapped = pt.wrap(pendulum)
    frame = pendulum.frame_names[-1]

    def cost(q, v, tau):
        ahead = wrapped.step(q, v, tau, 0.01)
        return (ahead[1] ** 2).sum() + wrapped.frame_pose(ahead[0], frame).sum()

    compiled = torch.compile(cost, fullgraph=True, backend="aot_eager")
    found = []
    for function in (cost, compiled):
        tensors = _tensors(cases.state(pendulum, (5,)), grad=True)
        value = function(*tensors)
        found.append((value.detach(), *torch.autograd.grad(value, tensors)))
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs, 1e-12)


@pytest.mark.filterwarnings("ignore")
def test_transforms_inside_compiled_graphs(pendulum) -> None:
    """``torch.func`` in both modes, nested and with maps: as outside of ``torch.compile``."""
    wrapped = pt.wrap(pendulum)
    q, v, tau = _tensors(cases.state(pendulum))
    f, many = torch.func, torch.stack([q, v])

    def dynamics(q):
        return wrapped.forward_dynamics(q, v, tau)

    def energy(q):
        return dynamics(q) @ v

    cases_of = (
        (f.jacfwd(dynamics), q),
        (f.grad(energy), q),
        (f.jacfwd(f.jacfwd(dynamics)), q),
        (f.jacrev(f.jacrev(dynamics)), q),
        (f.hessian(energy), q),
        (torch.vmap(f.grad(energy)), many),
        (f.grad(lambda q: torch.vmap(energy)(q).sum()), many),
    )
    for function, at in cases_of:
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        close(compiled(at), function(at), 1e-12)


def test_the_operator_in_forward_mode(pendulum) -> None:
    """Changes of its results, and not zero: as of the quantity."""
    wrapped = pt.wrap(pendulum)
    q, v, tau = _tensors(cases.state(pendulum))
    number = wrapped.field.number

    def operator(q):
        return torch.ops.phistar.quantity([q, v, tau], number, "forward_dynamics", "")[0]

    _, change = torch.func.jvp(operator, (q,), (v,))
    at = pendulum.linearize(q.numpy(), v.numpy(), tau.numpy())
    close(change, at.vdot_q @ v.numpy(), 1e-10)


def test_the_operator_is_well_behaved(pendulum) -> None:
    """``torch.library.opcheck``: schema, fake tensors, autograd, tracing."""
    wrapped = pt.wrap(pendulum)
    tensors = _tensors(cases.state(pendulum, (3,)), grad=True)
    given = (tensors, wrapped.field.number, "forward_dynamics", "")
    torch.library.opcheck(torch.ops.phistar.quantity.default, given)


def test_a_robot_that_is_gone(pendulum) -> None:
    """A graph that outlives its robot says so."""
    wrapped = pt.wrap(pendulum)
    number = wrapped.field.number
    tensors = _tensors(cases.state(pendulum))
    torch.ops.phistar.quantity(tensors, number, "forward_dynamics", "")
    del wrapped
    gc.collect()
    with pytest.raises(ArgumentError, match="a robot that is gone"):
        torch.ops.phistar.quantity(tensors, number, "forward_dynamics", "")


# -- memory, precision, devices


def test_memory_is_shared(panda, monkeypatch) -> None:
    """Contiguous float64 is read where it is, results are handed out where they were written."""
    wrapped = pt.wrap(panda)
    tensors = _tensors(cases.state(panda, (100,)))
    calc = wrapped.field.calculation("inverse_dynamics", {})
    seen = []
    run = calc.made.run

    def watched(*arrays):
        results = run(*arrays)
        seen.append(([x.ctypes.data for x in arrays], [x.ctypes.data for x in results]))
        return results

    monkeypatch.setattr(calc.made, "run", watched)
    result = wrapped.inverse_dynamics(*tensors)
    (given, made) = seen[0]
    assert given == [x.data_ptr() for x in tensors]
    assert made == [result.data_ptr()]


_DROPPED = """
import gc, os, weakref, numpy as np, torch, phistar
from phistar.interop import torch as pt
r = phistar.load("double_pendulum")
rng = np.random.default_rng(0)
q = r.random_configuration(rng, (3,))
x = [torch.from_numpy(a) for a in (q, *rng.normal(size=(2, 3, r.nv)))]
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
alive = []
def once(k):
    robot = r.with_gravity((0.0, 0.0, -9.0 - 0.001 * k))
    w = pt.wrap(robot)
    alive.append(weakref.ref(robot))
    at = [a.clone().requires_grad_() for a in x]
    found = w.inverse_dynamics(*at)
    if k % 20 == 0:
        back = torch.autograd.grad(found.sum(), at[0], create_graph=True)[0]
        torch.autograd.grad(back.sum(), at[1])
        expected = robot.linearize_inverse(*(a.numpy() for a in x)).tau_q.sum(-2)
        assert abs(back.detach().numpy() - expected).max() < 1e-9 * abs(expected).max()
for k in range(40):
    once(k)
gc.collect(); before = resident()
for k in range(40, 240):
    once(k)
gc.collect()
print(resident() - before, sum(each() is not None for each in alive))
"""


def test_memory_is_flat_over_200_robots() -> None:
    """Wrapped, run, differentiated twice and dropped: neither robots nor their code stay."""
    done = subprocess.run([sys.executable, "-c", _DROPPED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grown, alive = done.stdout.split()
    assert int(alive) <= 2
    # A robot's programs and code are some 0.3 MB; 200 would be far above this.
    assert float(grown) < 20.0


def test_single_precision_stays(panda) -> None:
    """float32 in, float32 out, gradients too; a number for dt has no precision of its own."""
    wrapped = pt.wrap(panda)
    arrays = [x.astype(np.float32) for x in cases.state(panda, (3,))]
    tensors = _tensors(arrays, grad=True)
    result = wrapped.forward_dynamics(*tensors)
    assert result.dtype == torch.float32
    close(result.detach(), panda.forward_dynamics(*(x.astype(float) for x in arrays)), 1e-3)
    assert all(g.dtype == torch.float32 for g in torch.autograd.grad(result.sum(), tensors))
    assert wrapped.step(*tensors, 0.01)[0].dtype == torch.float32


def test_numbers_are_as_precise_as_the_tensors(panda) -> None:
    """Numbers, lists and whole numbers have no precision: float64 beside float64, to all digits."""
    wrapped = pt.wrap(panda)
    arrays = cases.state(panda)
    tensors = _tensors(arrays)
    expected = panda.step(*arrays, 0.01, scheme="rk4", passive=False)
    for dt in (0.01, torch.tensor(0.01, dtype=torch.float64)):
        for ours, theirs in zip(wrapped.step(*tensors, dt, scheme="rk4"), expected, strict=True):
            close(ours, theirs, 1e-14)
    listed = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    close(wrapped.forward_dynamics(*tensors[:2], listed),
          panda.forward_dynamics(*arrays[:2], listed), 1e-13)  # fmt: skip
    wrench = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    close(wrapped.forward_dynamics(*tensors, forces={"panda_link8": wrench}),
          panda.forward_dynamics(*arrays, forces={"panda_link8": wrench}), 1e-13)  # fmt: skip
    narrow = [x.float() for x in tensors]
    for other in (listed, torch.ones(7, dtype=torch.int64), np.ones(7, dtype=int)):
        assert wrapped.step(narrow[0], other, narrow[2], 0.01)[1].dtype == torch.float32
    assert wrapped.gravity_force(listed).dtype == torch.get_default_dtype()


def test_views_of_negated_numbers(panda) -> None:
    """PyTorch negates lazily; what is read are the numbers."""
    q, v, tau = cases.state(panda)
    found = pt.wrap(panda).inverse_dynamics(torch._neg_view(torch.from_numpy(q)), v, tau)
    close(found, panda.inverse_dynamics(-q, v, tau), 1e-12)


def test_wrong_arguments(panda) -> None:
    """One clear error each."""
    wrapped = pt.wrap(panda)
    q, v, tau = _tensors(cases.state(panda))
    with pytest.raises(ArgumentError, match=r"torch.float16"):
        wrapped.forward_dynamics(q.half(), v, tau)
    with pytest.raises(ArgumentError, match="complex128"):
        wrapped.forward_dynamics(q + 0j, v, tau)
    with pytest.raises(ShapeError, match="q has shape"):
        wrapped.forward_dynamics(q[:-1], v, tau)
    with pytest.raises(ArgumentError, match=r"is on meta.*move=True"):
        wrapped.forward_dynamics(q.to("meta"), v, tau)
    with pytest.raises(ArgumentError, match=r"takes a phistar.Robot"):
        pt.wrap("panda")
    with pytest.raises(ArgumentError, match=r"sparse tensor; pass q.to_dense"):
        wrapped.mass_matrix(q.to_sparse())
    cases.check_wrong_arguments(wrapped, q, v, tau)


def test_buffers_that_were_changed(panda) -> None:
    """What backward needs was written to: PyTorch's error, not a wrong gradient."""
    wrapped = pt.wrap(panda)
    q, v, tau = _tensors(cases.state(panda))
    v.requires_grad_()
    result = wrapped.forward_dynamics(q, v, tau).sum()
    q += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_missing_or_old_package(panda, monkeypatch) -> None:
    """Named, with the line that installs it."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtraError, match=r"pip install \"phistar\[torch\]\""):
            pt.wrap(panda)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "1.13.1+cpu")
        with pytest.raises(PackageVersionError, match=r"'torch' is version 1.13.1.*2.8 or new"):
            pt.wrap(panda)


def test_samples_without_result_are_nan() -> None:
    """A quaternion that is not unit: that sample, and no exception."""
    robot = phistar.load("quadruped")
    q, v, tau = cases.state(robot, (6,))
    q[2, 3:7] *= 1.2
    found = pt.wrap(robot).inverse_dynamics(*_tensors((q, v, tau)))
    assert torch.isnan(found).all(-1).nonzero().ravel().tolist() == [2]
    assert int(torch.isnan(found).sum()) == robot.nv


def test_plain_methods_name_the_adapter(panda) -> None:
    """A tensor with a gradient in a method of the robot itself."""
    q, v, tau = _tensors(cases.state(panda), grad=True)
    with pytest.raises(ArgumentError, match=r"phistar\.interop\.torch"):
        panda.forward_dynamics(q, v, tau)


# -- threads and processes


class _Torques(torch.utils.data.Dataset):
    """Joint forces of random states, computed in the worker."""

    def __init__(self, wrapped) -> None:
        self.wrapped = wrapped

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int):
        return self.wrapped.inverse_dynamics(*_tensors(cases.state(self.wrapped.robot, seed=i)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader(pendulum, start: str) -> None:
    """After a fork with code in memory, and in a fresh process, which gets the robot pickled."""
    wrapped = pt.wrap(pendulum)
    wrapped.inverse_dynamics(*_tensors(cases.state(pendulum)))
    loader = torch.utils.data.DataLoader(
        _Torques(wrapped), batch_size=4, num_workers=2, multiprocessing_context=start
    )
    found = torch.cat(list(loader))
    expected = [pendulum.inverse_dynamics(*cases.state(pendulum, seed=i)) for i in range(8)]
    close(found, np.stack(expected), 1e-12)


def test_threads(panda) -> None:
    """Eight threads at once, forward and backward, each its own numbers."""
    wrapped = pt.wrap(panda)
    wrong: list[int] = []

    def work(seed: int) -> None:
        arrays = cases.state(panda, (50,), seed=seed)
        tensors = _tensors(arrays, grad=True)
        for _ in range(5):
            result = wrapped.forward_dynamics(*tensors)
            (g,) = torch.autograd.grad(result.sum(), tensors[2])
            expected = panda.mass_matrix_inverse(arrays[0]).sum(-2)
            if np.abs(g.numpy() - expected).max() > 1e-8 * np.abs(expected).max():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
