# SPDX-License-Identifier: BSD-3-Clause
"""Reports: a robot and a motion of it on one page, for people who do not run phistar."""

from phistar.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
