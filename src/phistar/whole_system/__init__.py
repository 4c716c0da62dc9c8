# SPDX-License-Identifier: BSD-3-Clause
"""The equations of all links at once (Featherstone and Orin, eqs. 23 to 29), sparse.

link_blocks             matrices of every link and joint at a state, for all links together
sparse_equations        the system, its order of elimination, its solution
block_cyclic_reduction  the constraint forces of a chain in O(log N) rounds
whole_system_mixin      a part of ``Robot``: ``system``, ``reaction_forces``
"""
