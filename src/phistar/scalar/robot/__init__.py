# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of one robot as programs see them: placements, inertias, joints, ancestor
relations."""
