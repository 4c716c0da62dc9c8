# SPDX-License-Identifier: BSD-3-Clause
"""A child of a fork gets lazy properties that another thread of its parent was working out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phistar import fork_locks

HELD = """
import os, threading
import phistar
from phistar.model.model import Model

robot = phistar.load("ur5")
lock = vars(Model)["fingerprint"].lock
held = threading.Event()

def hold():
    with lock:
        held.set()
        threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    os._exit(0 if len(robot.model.fingerprint) > 10 else 1)
print("child", os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.skipif(not fork_locks._has_locks(), reason="from Python 3.12 on there are no locks")
def test_properties_in_a_child() -> None:
    """The thread that holds the lock of ``Model.fingerprint`` does not exist in the child."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HELD],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "child 0\n", done.stderr


IMPORTING = """
import importlib, os, pathlib, sys, threading, time
import phistar

folder = pathlib.Path(sys.argv[1])
(folder / "slow_module.py").write_text("import time; time.sleep(0.5); value = 7")
sys.path.insert(0, str(folder))
begun = threading.Event()

def load():
    begun.set()
    import slow_module

threading.Thread(target=load, daemon=True).start()
begun.wait()
time.sleep(0.1)
child = os.fork()
if child == 0:
    import slow_module
    os._exit(slow_module.value)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_imports(tmp_path: Path) -> None:
    """A module that another thread was importing can be imported in the child."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.stdout == "child 7\n", done.stderr
