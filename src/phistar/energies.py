# SPDX-License-Identifier: BSD-3-Clause
"""Energy and momentum of a model for a user's arrays, rotors and mimic joints included.

Machine code answers as it does for kinematics, see ``kinematics``; the sweeps of named programs
give the rest: other dtypes, the first samples, long robots, other backends. ``Energies`` is the
mixin of ``Robot`` that asks.
"""

from __future__ import annotations

from collections.abc import Hashable

from phistar.arguments import check_shapes, checked_numbers
from phistar.arrays import Array
from phistar.compile import joint_map, kernel, run_traced
from phistar.kinematics import require_finite_result
from phistar.model.bad_samples import RAISE, nan_where_bad
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.model_cache import Entry


def momentum(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """Spatial momentum (..., 6) [angular; linear] of the moving links about the world's origin."""
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("momentum",), *arrays.values())
    if found is None:
        return require_finite_result(
            model, "momentum", arrays["q"], momentum_by_sweeps(model, **arrays), 1
        )
    return found


def kinetic_energy(model: Model, q: Coordinates, v: Coordinates) -> Array:
    """Kinetic energy (...) [J], that of the rotors included."""
    arrays = check_shapes(model, q=q, v=v)
    found = run_traced(model, ("kinetic_energy",), *arrays.values())
    if found is None:
        found = kinetic_energy_by_sweeps(model, **arrays)
        found = require_finite_result(model, "the kinetic energy", arrays["q"], found, 0)
    return found


def potential_energy(model: Model, q: Coordinates) -> Array:
    """Potential energy (...) [J] of the moving links in gravity; zero at the world's origin."""
    arrays = check_shapes(model, q=q)
    found = run_traced(model, ("potential_energy",), *arrays.values())
    if found is None:
        found = potential_energy_by_sweeps(model, **arrays)
        found = require_finite_result(model, "the potential energy", arrays["q"], found, 0)
    return found


def momentum_by_sweeps(model: Model, q: Array, v: Array) -> Array:
    """The momentum that the links hand inward to the ground, by the default backend."""
    q, v = checked_numbers(model, q=q, v=v)
    return kernel("momentum")(model, q, {"v": joint_map(model).spread(v)})["h"]


def kinetic_energy_by_sweeps(model: Model, q: Array, v: Array) -> Array:
    """Half the sum of V* M V over the links and of A v² over the joints, by the default backend."""
    q, v = checked_numbers(model, q=q, v=v)
    return kernel("kinetic_energy")(model, q, {"v": joint_map(model).spread(v)})["energy"]


def potential_energy_by_sweeps(model: Model, q: Array) -> Array:
    """What gravity gives the weighted points that the links hand inward, by the default backend."""
    (q,) = checked_numbers(model, q=q)
    return kernel("potential_energy")(model, q, {})["energy"]


class Energies:
    """Energy and momentum of a robot."""

    model: Model
    _entries: dict[Hashable, Entry | None]

    def momentum(self, q: Coordinates, v: Coordinates, *, on_error: str = "raise") -> Array:
        """Spatial momentum (..., 6) [angular; linear] about the world's origin, world axes."""
        entry = self._entries.get(("momentum",))
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.momentum, {"q": q, "v": v})
        return momentum(self.model, q, v)

    def kinetic_energy(self, q: Coordinates, v: Coordinates, *, on_error: str = "raise") -> Array:
        """Kinetic energy (...) [J], that of the rotors included."""
        entry = self._entries.get(("kinetic_energy",))
        if entry is not None and on_error is RAISE and (result := entry(q, v)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.kinetic_energy, {"q": q, "v": v})
        return kinetic_energy(self.model, q, v)

    def potential_energy(self, q: Coordinates, *, on_error: str = "raise") -> Array:
        """Potential energy (...) [J] of the moving links; zero with them at the world's origin."""
        entry = self._entries.get(("potential_energy",))
        if entry is not None and on_error is RAISE and (result := entry(q)) is not None:
            return result
        if on_error != "raise":
            return nan_where_bad(self.model, on_error, self.potential_energy, {"q": q})
        return potential_energy(self.model, q)
