# SPDX-License-Identifier: BSD-3-Clause
"""``phistar cache``: the compiled kernels kept on disk, and how to be rid of them."""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.text import Text

from phistar.backends.llvm import cache
from phistar.backends.llvm.engine import versions
from phistar.cli.text import clean, counted, make_console, make_table, print_line

SHOWN = 40
"""Kernels that are listed one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    text = "show what is there (default), or delete it"
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help=text)


def run(options: argparse.Namespace) -> int:
    """Show or empty the cache."""
    console = make_console()
    folder = cache.path()
    if folder is None:
        print_line(console, Text("The cache is switched off: PHISTAR_CACHE is 'off'."))
        return 0
    if options.action == "clear":
        size = cache.total()
        count = cache.clear()
        said = f"{counted(count, 'kernel')} deleted, {size / 1e6:.1f} MB, from {folder}"
        print_line(console, Text(clean(said)))
        return 0
    _show(console, cache.entries())
    console.print()
    print_line(console, Text(clean(f"folder    {folder}")))
    used = f"{cache.total() / 1e6:.1f} of {cache.limit() / 1e6:.0f} MB"
    print_line(console, Text(f"size      {used}"))
    print_line(console, Text(f"versions  {versions()}, format {cache.FORMAT}"))
    return 0


def _show(console: Console, entries: list[cache.Entry]) -> None:
    if not entries:
        console.print(Text("No kernels."))
        return
    right = ("kB", "last used")
    table = make_table("kernel", "for", *right, "made with", right=right)
    for entry in entries[:SHOWN]:
        name = entry.meta.get("name", entry.key[:12] if entry.meta else "(damaged)")
        table.add_row(
            Text(clean(name), style="cyan"),
            Text(clean(entry.meta.get("cpu", ""))),
            f"{entry.size / 1e3:.1f}",
            _ago(time.time() - entry.used),
            Text(clean(entry.meta.get("versions", ""))),
        )
    console.print(table)
    if len(entries) > SHOWN:
        console.print(Text(f"and {len(entries) - SHOWN} more"))


def _ago(seconds: float) -> str:
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"
