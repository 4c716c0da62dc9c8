# SPDX-License-Identifier: BSD-3-Clause
"""The tree of nodes at configurations, in NumPy: its operators by sweeps over nodes, in O(n).

With y the rates that are left (``model.nodes``), X the joint rates that they give and T = φᵢ*H*X
the motions of a node's links relative to its carrier,

    D = T*PT + X*AX,   K = CPT D⁻¹,   P(carrier) += CPC* - K D K*,   C = φ from link to carrier

is all that changes of the articulated-body algorithm. P is block diagonal over the links, so that
matrices have no more than six rows, or as many as a node has rates. Any dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.nodes import LinkNode, joint_rates, mimic_nodes
from phistar.spatial import force_transform, inertia_matrix


def _times(matrix: Array, x: Array) -> Array:
    return np.asarray((matrix @ x[..., None])[..., 0])


def _adjoint(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


@dataclass(frozen=True)
class NodeRates:
    """A node and what its rates do.

    Attributes:
        node: The node.
        rates: (r,) their numbers among all rates y.
        joints: For each body of the node (..., d, r) velocities of its joint per unit of rate.
    """

    node: LinkNode
    rates: Array
    joints: tuple[Array, ...]


def mimic_node_rates(model: Model, free: Array | None = None) -> tuple[NodeRates, ...]:
    """Nodes of mimic joints; the rates are the entries of v, or some of them.

    Args:
        model: The robot.
        free: (n,) entries of v that are rates; the others are held. Default: all.
    """
    rates = joint_rates(model)
    number = {
        entry: i for i, entry in enumerate(range(model.nv) if free is None else free.tolist())
    }
    found = []
    for node in mimic_nodes(model):
        own = [entry for entry in node.entries if entry in number]
        joints = []
        for k in node.bodies:
            columns = np.zeros((model.bodies[k].joint_kind.nv, len(own)))
            for rate in rates[k]:
                if rate.entry in number:
                    columns[rate.axis, own.index(rate.entry)] = rate.scale
            joints.append(columns)
        places = np.array([number[entry] for entry in own], dtype=int)
        found.append(NodeRates(node, places, tuple(joints)))
    return tuple(found)


@dataclass(frozen=True)
class _Factors:
    """What a node is at configurations.

    Attributes:
        motions: T(k) (..., 6, r) of each body.
        to_carrier: C(k) (..., 6, 6).
        inertias: P(k) (..., 6, 6).
        D: (..., r, r).
        D_inverse: The same, NaN where there is none.
        gain: K (..., 6, r) at the carrier.
    """

    motions: tuple[Array, ...]
    to_carrier: tuple[Array, ...]
    inertias: tuple[Array, ...]
    D: Array
    D_inverse: Array
    gain: Array


@dataclass(frozen=True, eq=False)
class NodeTree:
    """Operators over nodes, rates and links of a robot at configurations.

    Vectors over the rates are (..., n), those over the links (..., bodies, 6) in link axes.

    Attributes:
        model: The robot.
        q: (..., nq), checked.
        parts: Its nodes, carriers first.
        size: Number n of rates.
    """

    model: Model
    q: Array
    parts: Sequence[NodeRates]
    size: int

    @classmethod
    def of_mimics(cls, model: Model, q: Array) -> NodeTree:
        """The tree of a robot with reduced mimic joints, loops open: the rates are v."""
        return cls(model, q, mimic_node_rates(model), model.nv)

    # -- factors

    @cached_property
    def _shifts(self) -> list[Array]:
        return [force_transform(body.transform(self.q)) for body in self.model.bodies]

    @cached_property
    def factors(self) -> tuple[_Factors, ...]:
        """Of each node, in the order of ``parts``."""
        handed: dict[int, Array] = {}
        found = []
        for part in reversed(self.parts):
            own = self._factor(part, handed)
            found.append(own)
            if part.node.carrier != GROUND:
                felt = -own.gain @ own.D @ _adjoint(own.gain)
                for C, P in zip(own.to_carrier, own.inertias, strict=True):
                    felt = felt + C @ P @ _adjoint(C)
                known = handed.get(part.node.carrier)
                handed[part.node.carrier] = felt if known is None else known + felt
        return tuple(found[::-1])

    def _factor(self, part: NodeRates, handed: dict[int, Array]) -> _Factors:
        bodies = self.model.bodies
        place = {k: i for i, k in enumerate(part.node.bodies)}
        motions: list[Array] = []
        to_carrier: list[Array] = []
        inertias: list[Array] = []
        size = len(part.rates)
        D = np.zeros((size, size))
        forces = np.zeros((6, size))
        for k, X in zip(part.node.bodies, part.joints, strict=True):
            body, shift = bodies[k], self._shifts[k]
            T = body.joint_kind.motion_map() @ X
            C = shift
            if body.parent in place:
                T = T + _adjoint(shift) @ motions[place[body.parent]]
                C = to_carrier[place[body.parent]] @ shift
            P = inertia_matrix(body.inertia).astype(self.q.dtype)
            P = P + handed[k] if k in handed else P
            # Symmetric for ever: rounding must not grow from node to node.
            P = (P + _adjoint(P)) / 2
            armature = np.array(body.armature or np.zeros(len(X[..., 0])))
            D = D + _adjoint(T) @ P @ T + _adjoint(X) @ (armature[:, None] * X)
            forces = forces + C @ P @ T
            motions.append(T)
            to_carrier.append(C)
            inertias.append(P)
        inverse = _inverse(D)
        return _Factors(
            tuple(motions), tuple(to_carrier), tuple(inertias), D, inverse, forces @ inverse
        )

    @property
    def _dtype(self) -> np.dtype[np.generic]:
        dtypes = [X.dtype for part in self.parts for X in part.joints]
        return np.result_type(self.q, *dtypes) if dtypes else self.q.dtype

    def _over_links(self, batch: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        whole = np.broadcast_shapes(batch, self.q.shape[:-1])
        return np.zeros((*whole, len(self.model.bodies), 6), np.result_type(dtype, self._dtype))

    def _over_rates(self, batch: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        whole = np.broadcast_shapes(batch, self.q.shape[:-1])
        return np.zeros((*whole, self.size), np.result_type(dtype, self._dtype))

    # -- operators of one node

    def H(self, f: Array) -> Array:
        """Hₐ f: forces on links to forces on rates."""
        result = self._over_rates(f.shape[:-2], f.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            for k, T in zip(part.node.bodies, own.motions, strict=True):
                result[..., part.rates] += _times(_adjoint(T), f[..., k, :])
        return result

    def H_adjoint(self, y: Array) -> Array:
        """Hₐ* y: motions of links relative to the carriers of their nodes."""
        result = self._over_links(y.shape[:-1], y.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            for k, T in zip(part.node.bodies, own.motions, strict=True):
                result[..., k, :] = _times(T, y[..., part.rates])
        return result

    def E(self, f: Array) -> Array:
        """Eₐ f: the forces on the links of nodes, at their carriers."""
        result = self._over_links(f.shape[:-2], f.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            if part.node.carrier != GROUND:
                result[..., part.node.carrier, :] += self._at_carrier(part, own, f)
        return result

    def E_adjoint(self, x: Array) -> Array:
        """Eₐ* x: the motions of carriers, of the links of nodes that are rigid."""
        result = self._over_links(x.shape[:-2], x.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            if part.node.carrier != GROUND:
                self._from_carrier(part, own, x[..., part.node.carrier, :], result)
        return result

    @staticmethod
    def _at_carrier(part: NodeRates, own: _Factors, f: Array) -> Array:
        total = np.zeros(6)
        for k, C in zip(part.node.bodies, own.to_carrier, strict=True):
            total = total + _times(C, f[..., k, :])
        return total

    @staticmethod
    def _from_carrier(part: NodeRates, own: _Factors, motion: Array, result: Array) -> None:
        for k, C in zip(part.node.bodies, own.to_carrier, strict=True):
            result[..., k, :] += _times(_adjoint(C), motion)

    def P(self, x: Array) -> Array:
        """Pₐ x."""
        result = self._over_links(x.shape[:-2], x.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            for k, P in zip(part.node.bodies, own.inertias, strict=True):
                result[..., k, :] = _times(P, x[..., k, :])
        return result

    def D(self, y: Array) -> Array:
        """Dₐ y."""
        return self.by_node(y, [own.D for own in self.factors])

    def D_solve(self, y: Array) -> Array:
        """Dₐ⁻¹ y."""
        return self.by_node(y, [own.D_inverse for own in self.factors])

    def by_node(self, y: Array, blocks: Sequence[Array]) -> Array:
        """Vectors (..., n) multiplied by a block for the rates of each node."""
        result = self._over_rates(y.shape[:-1], y.dtype)
        for part, block in zip(self.parts, blocks, strict=True):
            result[..., part.rates] = _times(block, y[..., part.rates])
        return result

    def K(self, y: Array) -> Array:
        """Kₐ y: forces at the carriers per unit of force on the rates."""
        result = self._over_links(y.shape[:-1], y.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            if part.node.carrier != GROUND:
                result[..., part.node.carrier, :] += _times(own.gain, y[..., part.rates])
        return result

    def K_adjoint(self, x: Array) -> Array:
        """Kₐ* x."""
        result = self._over_rates(x.shape[:-2], x.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            if part.node.carrier != GROUND:
                motion = x[..., part.node.carrier, :]
                result[..., part.rates] = _times(_adjoint(own.gain), motion)
        return result

    def G(self, y: Array) -> Array:
        """Gₐ y = Pₐ Hₐ* Dₐ⁻¹ y."""
        return self.P(self.H_adjoint(self.D_solve(y)))

    def G_adjoint(self, x: Array) -> Array:
        """Gₐ* x."""
        return self.D_solve(self.H(self.P(x)))

    # -- sweeps

    def phi(self, f: Array) -> Array:
        """φₐ f, inward."""
        return self._inward(f, yields=False)

    def phi_adjoint(self, x: Array) -> Array:
        """φₐ* x, outward."""
        return self._outward(x, yields=False)

    def psi(self, f: Array) -> Array:
        """ψₐ f, inward through nodes that yield."""
        return self._inward(f, yields=True)

    def psi_adjoint(self, x: Array) -> Array:
        """ψₐ* x, outward."""
        return self._outward(x, yields=True)

    def _inward(self, f: Array, *, yields: bool) -> Array:
        result = self._over_links(f.shape[:-2], f.dtype)
        result += f
        for part, own in zip(reversed(self.parts), reversed(self.factors), strict=True):
            if part.node.carrier == GROUND:
                continue
            handed = self._at_carrier(part, own, result)
            if yields:
                handed = handed - _times(own.gain, self._felt(part, own, result))
            result[..., part.node.carrier, :] += handed
        return result

    @staticmethod
    def _felt(part: NodeRates, own: _Factors, f: Array) -> Array:
        """Hₐ f of one node."""
        total = np.zeros(len(part.rates))
        for k, T in zip(part.node.bodies, own.motions, strict=True):
            total = total + _times(_adjoint(T), f[..., k, :])
        return total

    def _outward(self, x: Array, *, yields: bool) -> Array:
        result = self._over_links(x.shape[:-2], x.dtype)
        result += x
        for part, own in zip(self.parts, self.factors, strict=True):
            if part.node.carrier == GROUND:
                continue
            motion = result[..., part.node.carrier, :]
            if yields:
                back = _times(_adjoint(own.gain), motion)
                for k, T in zip(part.node.bodies, own.motions, strict=True):
                    result[..., k, :] -= _times(T, back)
            self._from_carrier(part, own, motion, result)
        return result

    # -- the mass matrix

    def factor(self, y: Array) -> Array:
        """(I + HₐφₐKₐ) y."""
        return np.asarray(y + self.H(self.phi(self.K(y))))

    def factor_adjoint(self, y: Array) -> Array:
        """(I + HₐφₐKₐ)* y."""
        return np.asarray(y + self.K_adjoint(self.phi_adjoint(self.H_adjoint(y))))

    def factor_solve(self, y: Array) -> Array:
        """(I - HₐψₐKₐ) y: innovations of forces."""
        return np.asarray(y - self.H(self.psi(self.K(y))))

    def factor_adjoint_solve(self, y: Array) -> Array:
        """(I - HₐψₐKₐ)* y."""
        return np.asarray(y - self.K_adjoint(self.psi_adjoint(self.H_adjoint(y))))

    def mass_times(self, y: Array) -> Array:
        """X*𝓜X y by its factors."""
        return self.factor(self.D(self.factor_adjoint(y)))

    def solve(self, tau: Array) -> Array:
        """(X*𝓜X)⁻¹ τ: two sweeps."""
        batch = np.broadcast_shapes(tau.shape[:-1], self.q.shape[:-1])
        working: list[Array] = []
        forces: dict[int, Array] = {}
        for part, own in zip(reversed(self.parts), reversed(self.factors), strict=True):
            innovation = tau[..., part.rates]
            handed = np.zeros(6)
            for k, T, C in zip(part.node.bodies, own.motions, own.to_carrier, strict=True):
                if k in forces:
                    innovation = innovation - _times(_adjoint(T), forces[k])
                    handed = handed + _times(C, forces[k])
            working.append(_times(own.D_inverse, innovation))
            if part.node.carrier != GROUND:
                handed = handed + _times(own.gain, innovation)
                forces[part.node.carrier] = forces.get(part.node.carrier, 0.0) + handed
        result = self._over_rates(batch, tau.dtype)
        motions: dict[int, Array] = {}
        for part, own in zip(self.parts, self.factors, strict=True):
            rates = working.pop()
            base = None if part.node.carrier == GROUND else motions[part.node.carrier]
            if base is not None:
                rates = rates - _times(_adjoint(own.gain), base)
            result[..., part.rates] = rates
            for k, T, C in zip(part.node.bodies, own.motions, own.to_carrier, strict=True):
                moved = _times(T, rates)
                motions[k] = moved if base is None else moved + _times(_adjoint(C), base)
        return result

    def log_determinant(self) -> Array:
        """log det X*𝓜X (...)."""
        total = np.zeros(self.q.shape[:-1])
        for own in self.factors:
            if own.D.shape[-1]:
                total = total + np.linalg.slogdet(own.D)[1]
        return total

    # -- compliance

    @cached_property
    def compliances(self) -> Array:
        """Υ of each link (..., bodies, 6, 6): its accelerations per unit of force on it."""
        shape = (*self.q.shape[:-1], len(self.model.bodies), 6, 6)
        result = np.zeros(shape, self._dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            for k, T, W in zip(part.node.bodies, own.motions, self._across(own), strict=True):
                block = T @ own.D_inverse @ _adjoint(T)
                if part.node.carrier != GROUND:
                    block = block + W @ result[..., part.node.carrier, :, :] @ _adjoint(W)
                result[..., k, :, :] = block
        return result

    @staticmethod
    def _across(own: _Factors) -> list[Array]:
        """Motions of links per unit of the carrier's, rates free: C* - T K*."""
        back = _adjoint(own.gain)
        pairs = zip(own.motions, own.to_carrier, strict=True)
        return [_adjoint(C) - T @ back for T, C in pairs]

    def compliance_times(self, f: Array) -> Array:
        """Υₐ f: the blocks of nodes of ψₐ*Hₐ*Dₐ⁻¹Hₐψₐ."""
        result = self._over_links(f.shape[:-2], f.dtype)
        for part, own in zip(self.parts, self.factors, strict=True):
            rates = _times(own.D_inverse, self._felt(part, own, f))
            across = self._across(own)
            motion = np.zeros(6)
            if part.node.carrier != GROUND:
                force = np.zeros(6)
                for k, W in zip(part.node.bodies, across, strict=True):
                    force = force + _times(_adjoint(W), f[..., k, :])
                motion = _times(self.compliances[..., part.node.carrier, :, :], force)
            for k, T, W in zip(part.node.bodies, own.motions, across, strict=True):
                result[..., k, :] = _times(T, rates) + _times(W, motion)
        return result


def _inverse(D: Array) -> Array:
    """The inverse of positive matrices (..., r, r) by elimination; no numbers where there is none.

    Of any dtype: LAPACK knows neither long doubles nor what one sample of many lacks.
    """
    size = D.shape[-1]
    work = np.array(D, dtype=np.result_type(D, np.float32))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for k in range(size):
            pivot = 1.0 / work[..., k, k]
            column, row = work[..., :, k].copy(), work[..., k, :].copy()
            work -= pivot[..., None, None] * column[..., :, None] * row[..., None, :]
            work[..., k, :], work[..., :, k] = pivot[..., None] * row, -pivot[..., None] * column
            work[..., k, k] = pivot
    return np.asarray((work + _adjoint(work)) / 2)
