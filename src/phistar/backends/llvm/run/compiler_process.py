# SPDX-License-Identifier: BSD-3-Clause
"""Long compilations in a process of their own.

LLVM cannot be interrupted, must not be at work while a process ends, keeps the memory that it once
took, and cannot be forked in the middle. A process of its own can be ended at any time, and what it
took is free again.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from phistar import jobs
from phistar.backends.llvm.run import codegen
from phistar.thresholds import POLICY

MAX_BACKGROUND_PROCESSES = min(POLICY.max_background_processes, os.cpu_count() or 1)
"""Compilations in the background at the same time."""


def compile_in_process(text: str, cpu: str, features: str, opt_level: int) -> bytes | None:
    """The object file of a module, see ``assembler.object_code``.

    Returns:
        None if there is no process to be had.

    Raises:
        RuntimeError: The text is not a module, or the process was ended.
        AbandonedError: The job of this thread was.
    """
    command = _command()
    if command is None:
        return None
    job = jobs.current_job()
    data = text.encode()
    head = {
        "length": len(data),
        "path": _llvmlite_folder(),
        "cpu": cpu,
        "features": features,
        "opt_level": opt_level,
        "nice": 0 if job is None else POLICY.background_niceness,
    }
    message = (json.dumps(head).encode() + b"\n", data)
    if job is None:
        return _run_process(command, message, None)
    with _process_slots(job):
        job.raise_if_abandoned()
        return _run_process(command, message, job)


def _run_process(
    command: list[str], message: tuple[bytes, ...], job: jobs.BackgroundJob | None
) -> bytes | None:
    """The answer of a process to a message."""
    import subprocess

    windows = os.name == "nt"
    pipe = subprocess.PIPE
    try:
        # In a group of its own, Ctrl-C on a terminal does not reach it: we end it ourselves.
        process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            creationflags=0x200 if windows else 0,
            process_group=None if windows else 0,
        )
    except OSError as error:
        import logging

        logging.getLogger(jobs.LOGGER_NAME).info("no process to compile in: %s", error)
        return None
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if job is None:
            answer = _exchange(process.stdin, process.stdout, message)
        else:
            with job.on_abandon(process.kill):
                answer = _exchange(process.stdin, process.stdout, message)
    finally:
        process.kill()
        code = process.wait()
        process.stdout.close()
        # What could not be written is still in its buffer, and there is nobody to read it.
        with suppress(BrokenPipeError):
            process.stdin.close()
    return _decode_answer(answer, code, job)


def _exchange(given: IO[bytes], taken: IO[bytes], message: tuple[bytes, ...]) -> bytes:
    """What comes back; nothing from a process that was ended."""
    try:
        given.writelines(message)
        given.flush()
    except BrokenPipeError:
        return b""
    return taken.read()


def _decode_answer(answer: bytes, code: int, job: jobs.BackgroundJob | None) -> bytes:
    word, size = answer[:5], int.from_bytes(answer[5:13], "little")
    content = answer[13:]
    if len(answer) < 13 or len(content) != size:
        if job is not None:
            job.raise_if_abandoned()
        raise RuntimeError(f"the process that compiles was ended (code {code})")
    if word == codegen.FAILED_WORD:
        raise RuntimeError(content.decode())
    return content


def _command() -> list[str] | None:
    """How to start this Python again; None where its program may be anything."""
    name = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or "python" not in name:
        return None
    return [sys.executable, "-I", "-S", codegen.__file__]


def _llvmlite_folder() -> str:
    return str(Path(sys.modules["llvmlite"].__file__ or "").parents[1])


class _ProcessSlots:
    """Places for processes in the background."""

    def __init__(self) -> None:
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """None is taken: so it is in the child of a fork."""
        self._free = threading.Semaphore(MAX_BACKGROUND_PROCESSES)

    @contextmanager
    def __call__(self, job: jobs.BackgroundJob) -> Iterator[None]:
        """A place for a job, as soon as there is one; at once if somebody waits for it."""
        free = self._free
        taken = False
        while not (taken or job.urgent.is_set()):
            job.raise_if_abandoned()
            taken = free.acquire(timeout=jobs.POLL_SECONDS)
        try:
            yield
        finally:
            if taken:
                free.release()


_process_slots = _ProcessSlots()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process_slots.reset_after_fork)
