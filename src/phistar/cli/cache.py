# SPDX-License-Identifier: BSD-3-Clause
"""``phistar cache``: the compiled kernels on disk: list, delete."""

from __future__ import annotations

import argparse
import time
from textwrap import shorten

from rich.console import Console
from rich.text import Text

from phistar.backends.llvm.run import kernel_cache
from phistar.backends.llvm.run.jit import llvm_versions
from phistar.cli.terminal import clean, make_console, make_table, print_line
from phistar.errors import pluralize

EXAMPLE = "phistar cache clear"
MAX_KERNELS_LISTED = 40
"""Largest number of kernels listed."""
MAX_NAME = 44
"""Characters of a name that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    text = "show what is there (default), or delete it"
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help=text)


def run(options: argparse.Namespace) -> int:
    """Show or empty the cache."""
    console = make_console()
    folder = kernel_cache.folder_path()
    if folder is None:
        print_line(console, Text("The cache is switched off: PHISTAR_CACHE is 'off'."))
        return 0
    if options.action == "clear":
        size = kernel_cache.total_bytes()
        count = kernel_cache.clear()
        text = f"{pluralize(count, 'kernel')} deleted, {size / 1e6:.1f} MB, from {folder}"
        print_line(console, Text(clean(text)))
        return 0
    _show(console, kernel_cache.entries())
    console.print()
    print_line(console, Text(clean(f"folder    {folder}")))
    used = f"{kernel_cache.total_bytes() / 1e6:.1f} of {kernel_cache.limit_bytes() / 1e6:.0f} MB"
    print_line(console, Text(f"size      {used}"))
    print_line(console, Text(f"versions  {llvm_versions()}, format {kernel_cache.FORMAT_VERSION}"))
    return 0


def _show(console: Console, entries: list[kernel_cache.CachedKernel]) -> None:
    if not entries:
        console.print(Text("No kernels."))
        return
    right = ("kB", "last used")
    table = make_table("kernel", "for", *right, "made with", right=right)
    for entry in entries[:MAX_KERNELS_LISTED]:
        name = entry.meta.get("name", entry.key[:12] if entry.meta else "(damaged)")
        table.add_row(
            Text(shorten(clean(name), MAX_NAME, placeholder=" …"), style="cyan"),
            Text(clean(entry.meta.get("cpu", ""))),
            f"{entry.size / 1e3:.1f}",
            _ago(time.time() - entry.used),
            Text(clean(entry.meta.get("versions", ""))),
        )
    console.print(table)
    if len(entries) > MAX_KERNELS_LISTED:
        console.print(Text(f"and {len(entries) - MAX_KERNELS_LISTED} more"))


def _ago(seconds: float) -> str:
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= length:
            return f"{pluralize(int(seconds // length), unit)} ago"
    return "just now"
