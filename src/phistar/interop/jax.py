# SPDX-License-Identifier: BSD-3-Clause
"""A robot in JAX: ``from phistar.interop import jax as pj; r = pj.wrap(robot)``.

``r`` has the methods of the robot as functions of JAX arrays, for ``jit``, ``vmap``, ``grad``,
``scan`` and the rest. See docs/interop_jax.md. Needs the extra ``phistar[jax]``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from phistar.backends.jax.package import as_jax_array, is_jax_array, jax
from phistar.errors import ArgumentError, UnknownNameError
from phistar.interop.jax_calculations import REALS, FfiField, XlaField
from phistar.interop.wrapped import WrappedRobot, require_robot
from phistar.robot import Robot

if TYPE_CHECKING:
    from phistar.backends.jax.package import JaxArray

ENGINES = ("ffi", "xla", "callback")
"""Our machine code as custom calls of XLA; what XLA compiles itself; Python, called back."""

__all__ = ("ENGINES", "JaxRobot", "wrap")


class JaxRobot(WrappedRobot["JaxArray"]):
    """A robot on arrays of JAX.

    Attributes:
        engine: Which of ``ENGINES`` computes.
    """

    package = "JAX"

    def __init__(self, robot: Robot, engine: str) -> None:
        if engine == "xla":
            super().__init__(robot, XlaField(robot))
        else:
            super().__init__(robot, FfiField(robot, callback=engine == "callback"))
        self.engine = engine

    def __reduce__(self) -> tuple[Callable[[Robot, str], JaxRobot], tuple[Robot, str]]:
        """Made again from its robot, in another process too."""
        return wrap, (self.robot, self.engine)

    def _is_own(self, value: object) -> bool:
        return is_jax_array(value)

    def _array(self, value: object, name: str) -> JaxArray:
        array = as_jax_array(value, name)
        if str(array.dtype) not in REALS and self.engine != "xla":
            raise ArgumentError(
                f"{name} has dtype {array.dtype}; machine code computes with real numbers, "
                f"{' and '.join(REALS)}: take wrap(robot, engine='xla') for complex ones"
            )
        return array

    def _promoted(
        self, arrays: Mapping[str, JaxArray], plain: Collection[str] = ()
    ) -> list[JaxArray]:
        # Numbers without axes, a length of time for example, have no precision of their own.
        wide = [x for x in arrays.values() if x.ndim] or list(arrays.values())
        dtype = jax().numpy.result_type(*wide)
        return [x.astype(dtype) for x in arrays.values()]


def wrap(robot: Robot, engine: str = "ffi") -> JaxRobot:
    """A robot on arrays of JAX.

    Args:
        robot: The robot.
        engine: ``"ffi"``: our machine code, for processors; ``"xla"``: functions that XLA compiles
            and JAX differentiates, for accelerators and ``jax.export`` (programs of sweeps only);
            ``"callback"``: Python, called back. Where XLA cannot call machine code, ``"ffi"``
            becomes ``"callback"``, with a warning.

    Raises:
        MissingExtraError: JAX is not installed.
        PackageVersionError: It is too old.
        UnknownNameError: No such engine.
        ArgumentError: It is no robot.
    """
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    jax()
    require_robot(robot)
    if engine == "ffi":
        from phistar.interop.jax_ffi import handler

        engine = "ffi" if handler() is not None else "callback"
    return JaxRobot(robot, engine)
