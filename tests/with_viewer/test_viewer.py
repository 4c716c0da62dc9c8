# SPDX-License-Identifier: BSD-3-Clause
"""Robots in a browser: what one sees changes with what Python knows, and the other way round.

``make test-viewer`` runs these: they need viser, playwright and Debian's chromium.
"""

import io
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.cli import main
from phistar.errors import ArgumentError
from phistar.report import write_report
from phistar.spatial import quat_to_rotation, wxyz_to_xyzw
from phistar.viewer import Viewer, contact_arrows, joint_controls
from phistar.viewer.algebra_panels import PANELS, eigenvalues_panel, mass_matrix_panel
from phistar.viewer.overlays import articulated_inertias, equivalent_ellipsoid
from phistar.viewer.robot_nodes import SEEN_THROUGH
from phistar.viewer.view_state import ViewState
from phistar.viewer.viewer import FREE_TO_GO, panel_html
from phistar.viewer.web_server import free_port
from tests.helpers import require

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
ENDS_OF_CURVES = "Object.values(window.__viserTestpoints.uplots).map(x => x.chart.scales.x.max)"
"""The last time [s] on the axes of all live plots."""


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
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        context = play.chromium.launch_persistent_context(
            folder,
            executable_path=shutil.which("chromium"),
            headless=True,
            args=list(FLAGS),
            viewport={"width": 640, "height": 480},
        )
        yield Browser(context)
        context.close()


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a package the tests are skipped; where CI is set they fail."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get"):
        require(False, "apt-get install chromium")
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get"):
        require(False, "apt-get install chromium")
    require(True, "nothing is missing")


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
        viewer._player.pause()
        viewer._player.go_to(8)
        for _ in range(60):
            browser.page.wait_for_timeout(500)
            ends = browser.page.evaluate(ENDS_OF_CURVES)
            if ends == [0.3, 0.3]:
                break
        assert ends == [0.3, 0.3]
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


def _pixel(browser: Browser, viewer: Viewer, point: np.ndarray) -> tuple[float, float]:
    """Where a point of the world is on the page."""
    (client,) = viewer._server.get_clients().values()
    camera = client.camera
    turn = quat_to_rotation(wxyz_to_xyzw(np.asarray(camera.wxyz)))
    x, y, z = turn.T @ (point - np.asarray(camera.position))
    box = browser.page.locator("canvas").first.bounding_box()
    focal = box["height"] / 2 / np.tan(camera.fov / 2)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return middle[0] + focal * x / z, middle[1] + focal * y / z


def test_a_frame_is_dragged_by_the_mouse(browser: Browser) -> None:
    """The frame goes where it is pulled, and is not turned."""
    robot = phistar.load("panda")
    browser.errors.clear()
    with robot.view(port=0) as viewer:
        dragger = viewer._dragger
        browser.open(viewer.url)
        browser.page.wait_for_timeout(3000)
        dragger._choice.value = "panda_link8"
        browser.page.wait_for_timeout(2000)
        start, pose = viewer.q, robot.frame_pose(viewer.q, "panda_link8")
        handle = pose[:3, 3] + 0.25 * dragger._gizmo.scale * (pose[:3, 0] + pose[:3, 2])
        x, y = _pixel(browser, viewer, handle)
        mouse = browser.page.mouse
        mouse.move(x, y, steps=5)
        browser.page.wait_for_timeout(2000)
        mouse.down()
        browser.page.wait_for_timeout(1000)
        for k in range(1, 7):
            mouse.move(x - 6 * k, y)
            browser.page.wait_for_timeout(400)
        mouse.up()
        for _ in range(100):
            if dragger.status == "reached":
                break
            browser.page.wait_for_timeout(100)
        assert dragger.status == "reached"
        found = robot.frame_pose(viewer.q, "panda_link8")
        assert np.abs(viewer.q - start).max() > 0.02
        assert 0.02 < np.linalg.norm(found[:3, 3] - pose[:3, 3]) < 0.5
        assert found[:3, :3] == pytest.approx(pose[:3, :3], abs=1e-3)
    assert browser.errors == []


def test_a_frame_is_pulled_out_of_reach() -> None:
    """It goes as far as it can inside the limits, which is told; the gizmo comes back to it."""
    robot = phistar.load("panda")
    with robot.view(port=0) as viewer:
        dragger = viewer._dragger
        dragger._choice.value = "panda_link8"
        dragger._choose()
        dragger._gizmo.position = (3.0, 0.0, 0.5)
        dragger._release()
        assert dragger.status.startswith("out of reach")
        lower, upper = robot.limits.lower, robot.limits.upper
        assert ((viewer.q >= lower) & (viewer.q <= upper)).all()
        reached = robot.frame_pose(viewer.q, "panda_link8")[:3, 3]
        assert dragger._gizmo.position == pytest.approx(reached, abs=1e-9)


def test_a_linkage_stays_closed_while_a_joint_is_moved() -> None:
    """A slider takes the other joints along, as far as the loop lets it; velocities too."""
    robot = phistar.load("four_bar")
    with robot.view(port=0) as viewer:
        controls = viewer._controls
        sliders = {index: slider for index, slider in controls._sliders}
        crank = robot.joints["crank_joint"].q_slice.start
        rocker = robot.joints["rocker_joint"].q_slice.start
        sliders[crank].value = 0.3
        assert viewer.q[crank] == pytest.approx(0.3, abs=1e-12)
        assert np.abs(viewer.q).min() > 1e-2
        assert np.asarray(robot.loop_error(viewer.q)) == pytest.approx(0.0, abs=1e-9)
        speeds = dict(controls._speeds)
        speeds[robot.joints["crank_joint"].v_slice.start].value = 1.2
        assert viewer.v[robot.joints["crank_joint"].v_slice.start] == pytest.approx(1.2)
        rates = np.asarray(robot.loop_jacobian(viewer.q)) @ viewer.v
        assert rates == pytest.approx(0.0, abs=1e-9)
        sliders[rocker].value = sliders[rocker].min
        assert np.asarray(robot.loop_error(viewer.q)) == pytest.approx(0.0, abs=1e-9)
        assert sliders[rocker].value == pytest.approx(viewer.q[rocker], abs=1e-3)


def test_a_frame_of_a_linkage_is_pulled_along_its_loops() -> None:
    """The robot comes as near as its loops let it, which is told."""
    robot = phistar.load("four_bar")
    with robot.view(port=0) as viewer:
        dragger = viewer._dragger
        dragger._choice.value = "coupler"
        dragger._choose()
        dragger._turned.value = False
        dragger._gizmo.position = tuple(np.add(dragger._gizmo.position, (0.02, 0.0, 0.01)))
        dragger._release()
        assert np.asarray(robot.loop_error(viewer.q)) == pytest.approx(0.0, abs=1e-9)
        assert np.abs(viewer.q).max() > 1e-2
        assert dragger.status == "reached" or dragger.status.startswith("on the loops")


def test_numbers_beside_sliders_are_short() -> None:
    """Three decimals, ends of the range inside it; a small range has more."""
    ends = [(x.min, x.max, x.value) for x in _sliders_of("panda")]
    assert ends[1] == (-1.762, 1.762, -0.785)
    low, high = joint_controls.shortened(0.0, 0.04, joint_controls.round_step(0.04))
    assert (low, high) == (0.0, 0.04)
    assert joint_controls.round_step(0.04) == pytest.approx(1e-4)


def _sliders_of(name: str) -> list[object]:
    with phistar.load(name).view(port=0) as viewer:
        return [slider for _, slider in viewer._controls._sliders]


def test_joints_of_all_kinds_have_controls() -> None:
    """A gizmo of a ball joint behind another joint, and one of a free base, set what they show."""
    builder = phistar.model.builder.ModelBuilder("arm")
    builder.link("world")
    for name in ("base", "upper", "lower"):
        builder.link(name, mass=1.0, com=(0.1, 0.0, 0.0), inertia=np.eye(3))
    shift = np.eye(4)
    shift[:3, 3] = 0.3, 0.2, 0.1
    builder.joint("root", "free", "world", "base")
    builder.joint("turn", "revolute", "base", "upper", axis=(0, 0, 1), origin=shift)
    builder.joint("ball", "spherical", "upper", "lower", origin=shift)
    robot = phistar.Robot(builder.build())
    wanted = robot.random_configuration(1)
    with robot.view(port=0) as viewer:
        controls = viewer._controls
        viewer.show(wanted)
        gizmos = {joint.name: (joint, gizmo) for joint, gizmo in controls._gizmos}
        assert sorted(gizmos) == ["ball", "root"]
        places = {name: (g.position.copy(), g.wxyz.copy()) for name, (_, g) in gizmos.items()}
        start = robot.neutral()
        start[robot.joints["turn"].q_slice] = wanted[robot.joints["turn"].q_slice]
        viewer.show(start)
        for name in ("root", "ball"):
            joint, gizmo = gizmos[name]
            gizmo.position, gizmo.wxyz = places[name]
            controls._pulled(joint, gizmo)
            tip = robot.link_poses(viewer.q)["lower"][:3, 3]
            assert gizmos["ball"][1].position == pytest.approx(tip, abs=1e-6)
        expected = robot.link_poses(wanted)
        for link, pose in robot.link_poses(viewer.q).items():
            assert pose == pytest.approx(expected[link], abs=1e-9)


def test_a_robot_that_falls_stays_in_sight(browser: Browser) -> None:
    """Near its first place nothing moves; then the world is shifted, and comes back with it.

    Cameras are left to the browsers: moved from here while a motion plays, they go astray.
    """
    robot = phistar.load("quadruped")
    sim = robot.simulate(robot.home, np.zeros(robot.nv), dt=1e-3, duration=1.5, every=30)
    with robot.view(port=0, motion=sim) as viewer:
        browser.open(viewer.url)
        viewer._player.go_to(2)
        assert np.array_equal(viewer._world.position, np.zeros(3))
        room = FREE_TO_GO * viewer._size
        for number in range(len(sim.t)):
            viewer._player.go_to(number)
        fallen = robot.home[2] - viewer.q[2]
        assert fallen > 5.0
        assert viewer._world.position == pytest.approx([0.0, 0.0, fallen - room], rel=1e-6)
        browser.page.wait_for_timeout(3000)
        before = browser.picture()
        assert np.abs(before - before[0, 0]).max() > 60, "the robot is out of sight"
        viewer._player.go_to(0)
        assert np.linalg.norm(viewer._world.position) < room + 1e-9


def test_a_motion_begins_in_sight() -> None:
    """Wherever its first picture is: grid and camera are made for it, or the world is shifted."""
    robot = phistar.load("quadruped")
    far = robot.home.copy()
    far[:3] = 8.0, -3.0, 1.0
    sim = robot.simulate(far, np.zeros(robot.nv), dt=1e-3, steps=3)
    with robot.view(port=0, motion=sim) as viewer:
        camera = viewer._server.initial_camera
        assert np.linalg.norm(np.array(camera.look_at) - far[:3]) < viewer._size
        assert np.array_equal(viewer.q, far)
    with robot.view(port=0) as viewer:
        viewer.play(sim)
        seen = far[:3] + viewer._world.position
        assert np.linalg.norm(seen - robot.home[:3]) <= FREE_TO_GO * viewer._size + 1e-9


def test_a_robot_can_be_seen_through(browser: Browser) -> None:
    """A check box makes the surfaces transparent, and opaque again."""
    with phistar.load("panda").view(port=0) as viewer:
        browser.open(viewer.url)
        meshes = viewer._robot._opaque
        assert {mesh.opacity for mesh in meshes} == {None}
        browser.page.get_by_text("show", exact=True).click()
        box = browser.page.get_by_label("see through", exact=True)
        for wanted in (SEEN_THROUGH, None):
            box.click()
            for _ in range(60):
                browser.page.wait_for_timeout(250)
                if {mesh.opacity for mesh in meshes} == {wanted}:
                    break
            assert {mesh.opacity for mesh in meshes} == {wanted}


def test_a_batch_of_configurations_has_ghosts() -> None:
    """The first is the robot, the others are ghosts of it, up to the 16 that are drawn."""
    robot = phistar.load("panda")
    many = robot.random_configuration(np.random.default_rng(0), 20)
    with robot.view(many[:3], port=0) as viewer:
        ghosts = viewer._player._ghosts._robots
        assert np.array_equal(viewer.q, many[0])
        assert len(ghosts) == 2
        for ghost, q in zip(ghosts, many[1:3], strict=True):
            wanted = robot.link_poses(q)["panda_link7"][:3, 3]
            assert ghost.bodies[-1].position == pytest.approx(wanted, abs=1e-9)
        viewer.show(many)
        assert sum(ghost.visible for ghost in ghosts) == 15
        viewer.show(many[5])
        assert np.array_equal(viewer.q, many[5])
        assert not any(ghost.visible for ghost in ghosts)


def test_contacts_are_drawn_while_a_simulator_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forces as long as they are large at the places of the feet, energies, ghosts of others."""
    drawn: dict[str, np.ndarray] = {}
    monkeypatch.setattr(
        contact_arrows, "draw_arrows", lambda server, name, arrows, *_: drawn.update({name: arrows})
    )
    robot = phistar.load("quadruped")
    stand = robot.neutral()
    stand[7:] = np.tile([0.0, 0.7, -1.4], 4)
    stand[2] = 0.0125 - robot.frame_pose(stand, "FL_FOOT")[2, 3]
    sim = robot.simulator(3, dt=1e-3)
    sim.reset(q=stand)
    with sim.view(port=0) as viewer:
        for _ in range(30):
            tau = np.zeros((3, robot.nv))
            tau[:, 6:] = 4.0 * (stand[7:] - sim.q[:, 7:]) - 0.1 * sim.v[:, 6:]
            sim.step(tau, substeps=2)
            time.sleep(0.05)
        for _ in range(100):
            if np.array_equal(viewer.q, sim.q[0]):
                break
            time.sleep(0.05)
        assert np.array_equal(viewer.q, sim.q[0])
        with viewer._lock:  # what is drawn after the robot is drawn
            contacts = sim.contacts
        touching = np.linalg.norm(contacts.force[0], axis=-1) > 0.0
        arrows = drawn["/world/contacts/forces"]
        assert arrows[:, 0] == pytest.approx(contacts.position[0][touching], abs=1e-9)
        lengths = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=-1)
        weight = 9.81 * robot.total_mass
        forces = np.linalg.norm(contacts.force[0][touching], axis=-1)
        assert lengths == pytest.approx(viewer._size * forces / weight, rel=1e-6)
        rows = viewer._player._curves.rows
        assert rows[1, -1] == pytest.approx(robot.kinetic_energy(sim.q[0], sim.v[0]), rel=1e-6)
        assert len(viewer._player._ghosts._robots) == 2
        for pair, label in viewer._player._contacts._labels.items():
            assert label.text.split()[0] == contacts.names[pair]
            assert label.position == pytest.approx(contacts.position[0, pair], abs=1e-6)


def test_texts_of_gaps() -> None:
    """The closest first; wide ones are left out; no negative zero."""
    texts = contact_arrows.gap_texts(("a", "b", "c"), np.array([0.012, -1e-6, 0.5]))
    assert texts == [(1, "b 0.0 mm"), (0, "a 12.0 mm")]


def test_a_report_opens_without_network(browser: Browser, tmp_path: Path) -> None:
    """Its drawing too; nothing is asked for, nothing complains."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([1.5, 0.5], [0.0, 0.0], dt=1e-3, duration=0.5, every=10)
    page = write_report(robot, tmp_path / "report.html", sim, timings=False)
    browser.errors.clear()
    browser.page.context.set_offline(True)
    try:
        browser.page.goto(page.as_uri(), wait_until="domcontentloaded")
        browser.page.frame_locator("iframe").locator("canvas[data-ready]").wait_for()
        assert browser.page.get_by_text("Operations").count() > 0
    finally:
        browser.page.context.set_offline(False)
    assert browser.errors == []
    assert browser.outside == []


def test_dae_meshes_of_a_package() -> None:
    """A robot of another package: every mesh is found by package:// and has its size in metres."""
    share = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    folder = share / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scene = phistar.load(folder / "panda_description" / "urdf" / "panda.urdf").scene()
    assert scene.missing == ()
    (part,) = [part for part in scene.parts if part.link == "panda_link0"]
    assert np.ptp(part.surface.vertices, axis=0) == pytest.approx([0.226, 0.189, 0.14], abs=2e-3)


def test_what_the_command_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port in use and the next one, the address, and that there is no browser."""
    monkeypatch.setattr(Viewer, "wait", lambda self: None)
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", "double_pendulum", "--port", str(port)]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"port {port} is in use, taking ")
    assert second == f"double_pendulum: http://127.0.0.1:{first.split()[-1]}  (Ctrl-C ends it)"
    assert third == "no browser was found here: open the address above"


def test_a_port_in_use_gives_the_next() -> None:
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
    # A shell that runs the tests in the background has them, and what they start, ignore Ctrl-C.
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=listening
    ) as process:
        try:
            assert "http://127.0.0.1:" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
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


def test_eigenvalues_on_loops() -> None:
    """Those of the motion in independent coordinates: a four-bar has two."""
    robot = phistar.load("four_bar")
    v = robot.project(robot.home, np.array([1.0, 0.5, -0.2]))[1]
    at = robot.linearize(robot.home, v, robot.bias_force(robot.home, v))
    text = eigenvalues_panel(ViewState(robot.model, robot.home, v))
    found = re.findall(r"<title>(.*?)</title>", text)
    expected = sorted(np.abs(np.linalg.eigvals(at.reduced().A)))
    assert sorted(abs(complex(x)) for x in found) == pytest.approx(expected, rel=1e-3)
    assert len(found) == 2


def test_eigenvalues_of_a_base_that_turns() -> None:
    """Its tangent steps turn with it: the values are those of the whole state matrix."""
    robot = phistar.load("quadruped")
    v = np.zeros(robot.nv)
    v[:6] = [0.5, -2.0, 3.0, 1.0, 0.4, -0.7]
    at = robot.linearize(robot.home, v, robot.bias_force(robot.home, v))
    found = re.findall(
        r"<title>(.*?)</title>", eigenvalues_panel(ViewState(robot.model, robot.home, v))
    )
    expected = sorted(np.abs(np.linalg.eigvals(at.A)))
    assert sorted(abs(complex(x)) for x in found) == pytest.approx(expected, rel=1e-3, abs=1e-5)


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
        with pytest.raises(ArgumentError, match=r"expected \(nq,\) or a batch \(n, nq\)"):
            viewer.show(np.zeros((2, 2, 2)))
        with pytest.raises(ArgumentError, match="not finite"):
            viewer.show([[0.0, 0.0], [0.0, np.nan]])
    assert "closed" in repr(viewer)
