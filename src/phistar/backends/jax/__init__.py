# SPDX-License-Identifier: BSD-3-Clause
"""Programs of level 2 as pure functions of JAX arrays: for ``to_jax``.

package     the only file that imports JAX
tree        links by depth: which are side by side, whose children they are
links       a robot's numbers for all links at once, and what they are at a configuration
streams     the passes of a program, each as work on all links and one scan over the depths
"""
