# SPDX-License-Identifier: BSD-3-Clause
"""The papers: one file per family of theorems; operator expressions only, no loop over links."""
