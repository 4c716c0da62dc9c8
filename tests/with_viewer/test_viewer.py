# SPDX-License-Identifier: BSD-3-Clause
"""Robots in a browser: what one sees changes with what Python knows, and the other way round.

``make test-viewer`` runs these: they need viser, playwright and Debian's chromium.
"""

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError
from phistar.viewer.algebra_panels import PANELS, eigenvalues_panel, mass_matrix_panel
from phistar.viewer.overlays import articulated_inertias, equivalent_ellipsoid
from phistar.viewer.view_state import ViewState
from phistar.viewer.viewer import panel_html
from phistar.viewer.web_server import free_port

pytest.importorskip("viser", reason="the viewer needs viser: make test-viewer installs it")

FLAGS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-dev-shm-usage",
)
PATIENCE_MS = 120_000


class Browser:
    """A page of chromium that remembers errors and requests."""

    def __init__(self, context) -> None:
        self.page = context.pages[0]
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _said(self, message) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, request) -> None:
        if not request.url.startswith(
            ("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "data:", "blob:")
        ):
            self.outside.append(request.url)

    def open(self, url: str) -> None:
        self.page.goto(url, wait_until="domcontentloaded")
        self.page.wait_for_selector("canvas")

    def picture(self) -> np.ndarray:
        """The pixels of the canvas (height, width, 3)."""
        from PIL import Image

        data = self.page.locator("canvas").first.screenshot(timeout=PATIENCE_MS)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)

    def wait_for_change(self, before: np.ndarray) -> np.ndarray:
        """The picture as soon as it differs from an earlier one."""
        for _ in range(60):
            now = self.picture()
            if now.shape == before.shape and np.abs(now - before).max() > 30:
                return now
            self.page.wait_for_timeout(500)
        raise AssertionError("the picture did not change")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed: apt-get install chromium")
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        context = play.chromium.launch_persistent_context(
            folder,
            executable_path=chromium,
            headless=True,
            args=list(FLAGS),
            viewport={"width": 640, "height": 480},
        )
        yield Browser(context)
        context.close()


def test_a_slider_moves_the_picture_and_the_value(browser: Browser) -> None:
    """Python's q follows the slider, the picture both; a motion plays; nothing goes outside."""
    robot = phistar.load("panda")
    moved = threading.Event()
    with robot.view(port=0) as viewer:
        changed = viewer._controls.changed
        viewer._controls.changed = lambda q, v: (changed(q, v), moved.set())
        browser.open(viewer.url)
        browser.page.get_by_text("Software WebGL").first.wait_for(timeout=20_000)
        browser.page.locator(".mantine-Notification-closeButton").first.click()
        first = browser.picture()
        assert np.abs(first - first[0, 0]).max() > 60, "nothing is drawn"
        start = viewer.q
        handle = browser.page.locator('[role="slider"]').first
        handle.focus()
        for _ in range(40):
            handle.press("ArrowRight")
        assert moved.wait(60)
        second = browser.wait_for_change(first)
        assert viewer.q[0] > start[0] + 0.05
        assert np.array_equal(viewer.q[1:], start[1:])
        viewer.show(start)
        third = browser.wait_for_change(second)
        sim = robot.simulate(start, np.zeros(7), dt=1e-3, duration=0.3, every=10)
        viewer.play(sim)
        browser.page.get_by_role("button", name="play / pause").click()
        browser.wait_for_change(third)
        for _ in range(100):
            if np.abs(viewer.q - start).max() > 1e-3:
                break
            browser.page.wait_for_timeout(100)
        assert np.abs(viewer.q - start).max() > 1e-3
    assert browser.errors == []
    assert browser.outside == []


def test_an_exported_page_plays_without_network(browser: Browser, tmp_path: Path) -> None:
    """From a file, offline: it draws, moves, and asks for nothing."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([1.5, 0.5], [0.0, 0.0], dt=1e-3, duration=1.0, every=10)
    page = robot.save_html(tmp_path / "motion.html", sim)
    browser.errors.clear()
    browser.page.context.set_offline(True)
    try:
        browser.open(page.as_uri())
        browser.page.wait_for_selector("canvas[data-ready]")
        browser.page.get_by_role("button", name="Pause").click()
        slider = browser.page.locator("#slider")
        slider.evaluate("x => { x.value = 0; x.oninput({ target: x }); }")
        first = browser.picture()
        assert np.abs(first - first[0, 0]).max() > 60
        slider.evaluate("x => { x.value = 20; x.oninput({ target: x }); }")
        browser.wait_for_change(first)
        assert browser.page.locator("canvas").get_attribute("data-frame") == "20"
    finally:
        browser.page.context.set_offline(False)
    assert browser.errors == []
    assert browser.outside == []


def test_a_port_in_use_gives_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    """And ports that are none are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) != port
    for wrong in (-1, 70000):
        with pytest.raises(ArgumentError, match="from 0 to 65535"):
            free_port(wrong)


def test_the_command_ends_by_an_interrupt(tmp_path: Path) -> None:
    """It says where it is and how to end it; a motion of another robot is one line."""
    command = [sys.executable, "-m", "phistar", "view", "panda", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line
        process.send_signal(2)
        assert process.wait(60) == 0
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([0.1, 0.0], [0.0, 0.0], dt=1e-2, steps=3)
    path = sim.save(tmp_path / "motion.csv")
    done = subprocess.run(
        [*command, "--trajectory", str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "another robot than 'panda'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_panels_of_all_bundled_robots() -> None:
    """Every panel says something of every robot, or why it cannot."""
    for name in phistar.robots.names():
        robot = phistar.load(name).tree
        state = ViewState(robot.model, robot.home, np.full(robot.nv, 0.1))
        for title in PANELS:
            text = panel_html(title, state)
            assert ("mimic" in text) if name == "panda_hand" and "η" in title else len(text) > 50


def test_numbers_of_panels() -> None:
    """Entries of 𝓜 are in the map; an upright pendulum has an eigenvalue that grows."""
    robot = phistar.load("double_pendulum")
    state = ViewState(robot.model, np.array([0.3, 0.4]), np.zeros(2))
    matrix = robot.mass_matrix(state.q)
    assert f"{matrix[0, 1]:.4g}" in mass_matrix_panel(state)
    hanging = ViewState(robot.model, np.array([0.0, 0.0]), np.zeros(2))
    upright = ViewState(robot.model, np.array([np.pi, 0.0]), np.zeros(2))
    counts = {eigenvalues_panel(x).split(">")[1][:1] for x in (hanging, upright)}
    assert counts == {"0", "2"}


def test_ellipsoids_have_the_inertia() -> None:
    """Moments of the ellipsoid are those of the body; P(k) of a tip is its rigid inertia."""
    robot = phistar.load("panda")
    body = robot.model.bodies[3]
    pose, halves = equivalent_ellipsoid(body.inertia)
    mass = body.inertia[0]
    moments = mass / 5.0 * (np.sum(halves**2) - halves**2)
    R, c = pose[:3, :3], pose[:3, 3]
    about_origin = R @ np.diag(moments) @ R.T + mass * (c @ c * np.eye(3) - np.outer(c, c))
    from phistar.spatial import inertia_matrix

    assert about_origin == pytest.approx(inertia_matrix(body.inertia)[:3, :3], rel=1e-9, abs=1e-12)
    found = articulated_inertias(robot.model, robot.home)
    assert found[-1] == pytest.approx(inertia_matrix(robot.model.bodies[-1].inertia), abs=1e-12)
    op = robot.operators(robot.home)
    hinge = [
        H @ P @ H.T
        for H, P in zip((b.motion_map().T for b in robot.model.bodies), found, strict=True)
    ]
    assert np.concatenate(hinge).ravel() == pytest.approx(np.asarray(op.D @ np.ones(7)), rel=1e-9)


def test_wrong_motions_and_poses() -> None:
    """One clear line each."""
    robot = phistar.load("double_pendulum")
    other = phistar.load("panda")
    motion = other.simulate(other.home, np.zeros(7), dt=1e-2, steps=2)
    lost = robot.simulate([np.nan, 0.0], [0.0, 0.0], dt=1e-2, steps=2, on_error="nan")
    with robot.view(port=0) as viewer:
        with pytest.raises(ArgumentError, match="of 'panda', expected one of 'double_pendulum'"):
            viewer.play(motion)
        with pytest.raises(ArgumentError, match="not finite"):
            viewer.play(lost)
        with pytest.raises(ArgumentError, match="expected one configuration"):
            viewer.show(np.zeros((2, 2)))
    assert "closed" in repr(viewer)
