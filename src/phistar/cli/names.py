# SPDX-License-Identifier: BSD-3-Clause
"""Names on the command line that are not known: the user's mistake, told with close matches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phistar.cli import UsageError
from phistar.errors import UnknownNameError


@contextmanager
def asked_for() -> Iterator[None]:
    """Around the look-up of a name that the user typed."""
    try:
        yield
    except UnknownNameError as error:
        raise UsageError(str(error)) from error
