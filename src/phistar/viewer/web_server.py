# SPDX-License-Identifier: BSD-3-Clause
"""The server behind a viewer, on this machine only; no other module imports viser."""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import Iterator
from typing import Any

from phistar.errors import ArgumentError, MissingExtraError

HOST = "127.0.0.1"
DEFAULT_PORT = 8571
WORLD = "/world"
"""The node of the scene below which everything is: it moves where a robot goes far."""
PORTS_TRIED = 50
"""Ports that are tried after one that is taken."""


Server = Any
"""A server of viser, which is not installed where types are checked."""
Handle = Any
"""What such a server gives for a thing that it shows."""


def free_port(wanted: int = DEFAULT_PORT) -> int:
    """The first free port from ``wanted`` on; any free one if that is 0.

    Raises:
        ArgumentError: No port number, or none of those is free.
    """
    if not isinstance(wanted, int) or not 0 <= wanted <= 65535:
        raise ArgumentError(f"port is {wanted!r}, expected a number from 0 to 65535")
    for port in range(wanted, min(wanted + PORTS_TRIED, 65536)):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    raise ArgumentError(
        f"ports {wanted} to {wanted + PORTS_TRIED - 1} are all in use; name another"
    )


def start_server(port: int, title: str) -> Server:
    """A server of viser on a free port of this machine.

    Raises:
        MissingExtraError: viser is not installed.
    """
    try:
        import viser
    except ImportError:
        raise MissingExtraError("viser", "viewer", "Viewing a robot") from None
    with _silence():
        server = viser.ViserServer(host=HOST, port=port, label=title, verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    server.scene.set_up_direction("+z")
    return server


def stop_server(server: Server) -> None:
    """Stop a server and what it started."""
    with _silence():
        server.stop()


def curve(label: str, colour: str) -> Handle:
    """A line of a live plot."""
    import viser

    return viser.uplot.Series(label=label, stroke=colour, width=2)


def padded(content: str) -> str:
    """HTML as far from the edge of the panel as its other rows are."""
    return f'<div style="padding:0 10px">{content}</div>'


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """viser prints a banner; a line with the address is for the caller to print."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
