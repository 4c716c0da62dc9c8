# SPDX-License-Identifier: BSD-3-Clause
"""Closed loops: rows of constraints, dynamics with them, assembly, mobility, minimal coordinates.

system          what is known of a robot's active loops, and their rows at states
rank            how many rows are independent, and which
uniqueness      which parts of loop wrenches are determined
held            loops that hold frames anywhere, or move as they are told
prescribed      motion in time from functions, arrays and numbers
routes          forward dynamics with loops, by six ways that agree
join            one of them: each loop is closed at the nearest common ancestor of its links
constrained_dynamics
                accelerations and loop wrenches for a user's arrays
inverse         efforts of actuators, statics, internal forces
linearization   derivatives of forward dynamics through loops, in full and minimal coordinates
second_derivatives
                second derivatives through loops, tensors and products
driven_joints   dynamics with the motion of some joints prescribed, and its derivatives
assembly        configurations onto the loops, states nearest to given ones
mobility        degrees of freedom, redundant rows, self-stress, singular configurations
loop_operators  L and L𝓜⁻¹L* at a state, applied
traced_rows     machine code for dynamics with loops and for projection
minimal         independent coordinates, and the tree's operators on them
"""
