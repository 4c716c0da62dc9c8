# SPDX-License-Identifier: BSD-3-Clause
"""Errors in names and values of the command line, as usage errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phistar.cli import UsageError
from phistar.errors import (
    ArgumentError,
    DivergenceError,
    ShapeError,
    TooLargeError,
    UnknownNameError,
)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Convert errors of a name or value that the user typed; divergence is not one of them."""
    try:
        yield
    except DivergenceError:
        raise
    except TooLargeError as error:
        raise UsageError(str(error).replace("every=", "--every ")) from error
    except (ArgumentError, ShapeError, UnknownNameError) as error:
        raise UsageError(str(error)) from error
