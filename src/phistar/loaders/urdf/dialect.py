# SPDX-License-Identifier: BSD-3-Clause
"""The URDF dialect of phistar: what plain URDF cannot express, in a namespace other readers skip.

The reader (``urdf_reader.py``) and the writer (``urdf_writer.py``) share the names below. A file
that uses the dialect declares ``xmlns:phistar="urn:phistar:urdf"`` on its root. Numbers are XSD
doubles separated by blanks; in limits ``inf`` and ``-inf`` mean unlimited.

On ``<robot>``:
    ``phistar:forest="true"``       several root links are allowed.
    ``<phistar:gravity xyz="0 0 -9.81"/>``
    ``<phistar:frame name="tool" link="hand"><origin .../></phistar:frame>``
    ``<phistar:loop name="l" type="revolute" active="true">
    <phistar:predecessor link="a"><origin .../></phistar:predecessor>
    <phistar:successor link="b"><origin .../></phistar:successor><axis xyz="0 0 1"/>
    </phistar:loop>``               type: a row of ``LOOP_KINDS``; the link ``world`` is the ground.
    ``<phistar:coupling name="c" joint="y" source="x" coefficients="0 1" references="0 0"
    active="true"/>``               source may be absent or empty.
    ``<phistar:actuator name="a" gain="1 0 0" bias="0 0 0" ctrlrange="-1 1" forcerange="-1 1">
    <phistar:joint name="j" gear="1"/>...</phistar:actuator>``
                                    see ``model.actuators``; only the name and a joint are needed.
    ``<phistar:order><phistar:joint name="j"/>...</phistar:order>``
                                    order of the coordinates, every independent joint once.
    ``<phistar:configuration name="home" values="0 0.5 0" base="0 0 1 0 0 0 1"/>``
                                    length nq, in the order of the coordinates; base (optional):
                                    q of the free joint that ``floating_base=True`` adds.

On ``<link>``:
    ``phistar:virtual="true"``      a massless link that only realises a joint.
    ``phistar:ground="true"``       the ground itself, no link of the model: joints with this parent
                                    are on the ground. It has no parent joint.

In ``<joint>``, whose types are those of ``KIND_OF_TYPE``, with the prefix ``phistar:`` where a
reader that does not know the elements below would get the joint wrong:
    ``<phistar:axis2 xyz="0 1 0"/>``     second axis of a universal joint.
    ``<phistar:pitch value="0.01"/>``    advance of a helical joint [m/rad].
    ``<phistar:child_origin .../>``      child link's frame in the joint's moved frame, attributes
                                         as those of ``<origin>``.
    ``<phistar:reference value="0"/>``   coordinate at which the joint's transform is the identity.
    ``<phistar:limits lower="..." upper="..." velocity="..." effort="..."/>``
                                         nq, nq, nv and nv numbers; overrides ``<limit>``.
    ``<phistar:dynamics armature="..." rotor_inertia="..." gear_ratio="..." damping="..."
    friction="..." stiffness="..." spring_reference="..."/>``
                                         nv numbers each, spring_reference nq; overrides
                                         ``<dynamics>``.

On every ``<origin>`` and ``<phistar:child_origin>``:
    ``phistar:rotation="r11 r12 r13 r21 ... r33"``
                                         the exact rotation matrix; rpy must agree to 1e-9.

Shapes that plain URDF does not know:
    ``<phistar:visual>``, ``<phistar:collision>``  like ``<visual>`` and ``<collision>``, with
    ``<geometry><phistar:shape kind="ellipsoid" size="..." mesh=""/></geometry>``.
    ``<phistar:color rgba="..."/>``  colour of a collision shape.
"""

from __future__ import annotations

NAMESPACE = "urn:phistar:urdf"
"""Namespace of the dialect's elements and attributes."""

DRAKE_NAMESPACE = "http://drake.mit.edu"
"""Namespace of Drake's extensions of URDF."""

KIND_OF_TYPE = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
    "free": "free",
    "helical": "helical",
    "cylindrical": "cylindrical",
    "universal": "universal",
    "spherical": "spherical",
    "translation": "translation",
}
"""Joint kind of each value of ``<joint type=...>``; the first six are plain URDF."""

DRAKE_KIND_OF_TYPE = {
    "ball": "spherical",
    "planar": "planar",
    "screw": "helical",
    "universal": "universal",
}
"""Joint kind of each value of ``<drake:joint type=...>``."""

LOOP_KINDS = ("weld", "revolute", "prismatic", "spherical", "cylindrical", "planar")
"""Values of ``<phistar:loop type=...>``."""


def qname(local: str) -> str:
    """The name of a dialect element or attribute as lxml spells it."""
    return f"{{{NAMESPACE}}}{local}"
