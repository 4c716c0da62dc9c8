# SPDX-License-Identifier: BSD-3-Clause
"""What joints do by themselves: springs, dampers, friction, limits; and actuators.

Rigid-body dynamics leaves them out unless it is told; ``simulate`` and ``step`` use them.
"""
