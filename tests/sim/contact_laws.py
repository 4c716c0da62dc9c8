# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a simulator whose laws are looked at in each of them: a helper of tests.

Forces push, and only where a gap closes (complementarity); they stay in the cone of friction,
inside of which nothing slips and on whose edge they go against the slip; and they are what the
robot feels: by its inverse dynamics and Jacobians, the contact forces on what touches and the
opposite ones on what is touched are the joint forces that the change of velocity takes (Newton's
second and third laws). Energy does not rise by more than what joint forces put in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

import phistar
from phistar.arrays import Array
from phistar.model.floating_roots import carried_velocity
from phistar.sim.contact_report import Contacts, contacts_of
from phistar.sim.simulator import Simulator

TOLERANCE = 1e-8
"""Of forces, as a part of the weight; of the cone, as a part of the normal force."""
SOLVED = 1e-6
"""Of rates of contacts, as a part of the fastest approach and of a step of free fall."""
PROJECTED = 2e-2
"""The same on closed loops: a step ends with a projection, which no force makes."""
ENERGY = 1e-9
"""Of energy, as a part of the weight times a metre."""


class LawfulSteps:
    """Steps of a simulator without springs and damping; ``require_laws`` looks at all of them.

    Args:
        robot: The robot.
        sim: Its simulator.
        motions: Of a robot with loops: velocities (batch, n, nv) that keep them, at configurations.
    """

    def __init__(
        self,
        robot: phistar.Robot,
        sim: Simulator,
        motions: Callable[[Array], Array] | None = None,
    ) -> None:
        self.robot, self.sim, self.motions = robot, sim, motions
        mass = sum(link.mass for link in robot.model.links)
        self.gravity = float(np.linalg.norm(robot.model.gravity))
        self.weight = mass * self.gravity
        self._q, self._v, self._impulses, self._tau = [sim.q], [sim.v], [], []

    def take(self, tau: Array | None = None, steps: int = 1) -> None:
        """Some steps under joint forces (nv,) or (batch, nv)."""
        sim = self.sim
        for _ in range(steps):
            state = sim.step(tau)
            self._q.append(state.q)
            self._v.append(state.v)
            self._impulses.append(sim._state.impulses)
            self._tau.append(np.zeros_like(state.v) if tau is None else np.array(tau))

    @property
    def q(self) -> Array:
        """(steps + 1, batch, nq)."""
        return np.stack(self._q)

    def energy(self) -> Array:
        """(steps + 1, batch) [J]."""
        q, v = self.q, np.stack(self._v)
        return np.asarray(self.robot.kinetic_energy(q, v) + self.robot.potential_energy(q))

    def work(self) -> Array:
        """(steps + 1, batch) what joint forces have put in [J]."""
        tau = np.broadcast_to(np.stack(self._tau), np.shape(self._v[1:]))
        done = self.sim.dt * (tau * np.stack(self._v[1:])).sum(axis=-1)
        return np.concatenate([np.zeros_like(done[:1]), np.cumsum(done, axis=0)])

    def require_laws(self, energy_slack: float = 0.0, solved: float = SOLVED) -> None:
        """Look at all steps.

        Args:
            energy_slack: How much energy may rise by the scheme's own error, of the weight times a
                metre.
            solved: How far the solver's rounds may be from the exact solution: rates of contacts,
                of the fastest approach and of a step of free fall.
        """
        robot, sim = self.robot, self.sim
        q = self.q[:-1].reshape(-1, robot.nq)
        v, later = (np.stack(x).reshape(-1, robot.nv) for x in (self._v[:-1], self._v[1:]))
        impulses = np.stack(self._impulses).reshape(len(q), -1)
        tau = np.broadcast_to(np.stack(self._tau), np.shape(self._v[1:])).reshape(-1, robot.nv)
        later_q = self.q[1:].reshape(-1, robot.nq)
        later = self._in_old_axes(q, later_q, later)
        forces = self._forces(q, v, impulses)
        self._require_cones(forces)
        rate = (later - v - carried_velocity(robot.model, v, sim.dt)) / sim.dt
        needed = robot.inverse_dynamics(q, v, rate) - tau
        owners = {shape.name: link.name for link in robot.model.links for shape in link.collisions}
        felt = self._felt(q, forces, forces.links, 1.0)
        felt += self._felt(q, forces, [owners.get(x) for x in forces.surfaces], -1.0)
        for i, row in enumerate(sim._bounded):
            felt[:, row.v] += impulses[:, i] / sim.dt
        self._require_complementarity(forces, sim._points.at(q, later), solved)
        size = np.maximum(np.abs(forces.force).sum(axis=(1, 2)), self.weight)[:, None]
        missing = (needed - felt) / size
        if self.motions is not None:
            # What loops carry does nothing along the motions that keep them.
            missing = np.einsum("bij,bj->bi", self.motions(q), missing)
        assert np.abs(missing).max() <= (TOLERANCE if self.motions is None else PROJECTED)
        self._require_energy(energy_slack)

    def _in_old_axes(self, q: Array, later_q: Array, later: Array) -> Array:
        """Velocities after steps, those of floating bodies in the axes from before."""
        found = np.array(later)
        for joint in (self.robot.model.joints[name] for name in self.robot.joint_names):
            if joint.joint_kind.name != "free":
                continue
            place, own = joint.q_slice, joint.v_slice
            mass = self.robot.model.links[
                [x.name for x in self.robot.model.links].index(joint.child)
            ]
            before, after = (Rotation.from_quat(x[:, place][:, 3:]) for x in (q, later_q))
            turn, speed = later[:, own][:, :3], later[:, own][:, 3:]
            center = np.cross(turn, mass.com)
            found[:, own.start + 3 : own.stop] = (
                before.inv().apply(after.apply(speed + center)) - center
            )
        return found

    def _forces(self, q: Array, v: Array, impulses: Array) -> Contacts:
        """Contacts at the start of all steps, with the forces that act during them."""
        sim = self.sim
        own = impulses[:, len(sim._bounded) :].reshape(len(q), -1, 3)
        return contacts_of(sim._pairs, own, sim.dt, sim._points.at(q, v))

    def _require_cones(self, c: Contacts) -> None:
        assert c.normal_force.min() >= -TOLERANCE * self.weight
        slack = TOLERANCE * (self.weight + c.normal_force)
        assert (c.tangential_force <= c.friction * c.normal_force + slack).all()

    def _require_complementarity(self, c: Contacts, found: dict[str, Array], solved: float) -> None:
        """Pairs that push neither close nor open, none closes too far, and friction is Coulomb's.

        Args:
            c: At the start of the steps.
            found: The same places under the velocities after the steps.
            solved: How far rates may be off, of the fastest approach and of a step of free fall.
        """
        dt, pairs = self.sim.dt, self.sim._pairs
        rates = found["rates"].reshape(len(c.gap), -1, 3)
        closing, slip = rates[..., 0], np.linalg.norm(rates[..., 1:], axis=-1)
        slack = solved * (np.abs(c.rate).max(axis=1, keepdims=True) + self.gravity * dt)
        inside = np.maximum(0.2 * c.gap / dt, -1.0)
        away = closing + np.where(c.gap > 0.0, c.gap / dt, inside)
        bounces = np.array([pair.row.restitution for pair in pairs])
        bounced = np.where(bounces > 0.0, np.abs(closing + bounces * c.rate), np.inf)
        pushes = c.normal_force > TOLERANCE * self.weight
        assert (away >= -slack).all()
        assert (np.minimum(np.abs(away), bounced) <= slack)[pushes].all()
        sticks = pushes & (c.tangential_force < (1.0 - 1e-6) * c.friction * c.normal_force)
        assert (slip <= slack)[sticks].all()
        tangents = found["axes"].reshape(*rates.shape, 3)[..., 1:, :]
        power = np.einsum("bpij,bpi,bpj->bp", tangents, rates[..., 1:], c.force)
        lost = c.tangential_force * slip
        slides = pushes & ~sticks & (c.tangential_force > TOLERANCE * self.weight)
        assert (lost + power <= slack * c.tangential_force)[slides].all()

    def _felt(self, q: Array, c: Contacts, links: Sequence[str | None], sign: float) -> Array:
        """Joint forces of forces on links; None: of the ground."""
        total = np.zeros((len(q), self.robot.nv))
        for link in {x for x in links if x is not None and x in self.robot.frame_names}:
            own = [i for i, x in enumerate(links) if x == link]
            J = self.robot.jacobian(q, link, "world_aligned")
            arm = c.position[:, own] - self.robot.frame_pose(q, link)[:, None, :3, 3]
            pushed = sign * c.force[:, own]
            wrench = np.concatenate([np.cross(arm, pushed), pushed], axis=-1).sum(axis=1)
            total += np.einsum("bij,bi->bj", J, wrench)
        return total

    def _require_energy(self, slack: float) -> None:
        """Energy less work is never above its least value so far."""
        energy = self.energy() - self.work()
        least = np.minimum.accumulate(energy, axis=0)
        assert (energy - least).max() <= (ENERGY + slack) * self.weight
