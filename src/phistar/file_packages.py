# SPDX-License-Identifier: BSD-3-Clause
"""Packages for files of others: imported here and nowhere else, when they are first needed."""

from __future__ import annotations

from typing import Any

from phistar.errors import MissingExtraError

Package = Any
"""A module, the types of which are known only where it is installed."""


def mcap() -> Package:
    """The package ``mcap``, with its reader and writer."""
    try:
        import mcap as found
        import mcap.exceptions
        import mcap.reader
        import mcap.writer
    except ImportError:
        raise MissingExtraError("mcap", "logs", "Reading or writing an MCAP log") from None
    return found


def rosbags() -> Package:
    """The package ``rosbags``, with its readers and types of messages."""
    try:
        import rosbags as found
        import rosbags.highlevel
        import rosbags.typesys
    except ImportError:
        raise MissingExtraError("rosbags", "logs", "Reading messages of ROS") from None
    return found


def parquet() -> Package:
    """The module ``pyarrow.parquet``."""
    try:
        import pyarrow.parquet as found
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "Reading a Parquet log") from None
    return found


def zarr() -> Package:
    """The package ``zarr``."""
    try:
        import zarr as found
    except ImportError:
        raise MissingExtraError("zarr", "zarr", "A Zarr store") from None
    return found
