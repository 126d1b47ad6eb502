"""Work in a process of its own: what hangs, dies or takes too much ends as a failure that names what it was given."""

import importlib
import io
import os
import resource
import signal
import tempfile
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from typing import NamedTuple

SECONDS = 20
"""CPU seconds that a call may take."""
PATIENCE = 120.0
"""Seconds to wait for an answer, also of what waits without computing: a loaded machine is slow."""
MODULES = (
    "dpmask.job.run",
    "dpmask.job.estimate",
    "dpmask.job.taxonomy",
    "dpmask.release.verify",
    "pyarrow.parquet",
    "s3fs",
)


class Ended(NamedTuple):
    """How a command ended: a signal's number below zero, what it printed, and what it took beyond a plain start."""

    code: int
    text: str
    seconds: float = 0.0
    megabytes: float = 0.0


class Apart:
    """Calls functions in another process, one after the other; a new one takes over where one was ended.

    It has imported what a plain start imports, and those modules.
    """

    def __init__(self, *modules, patience=PATIENCE):
        self.modules, self.patience, self.process, self.link = modules, patience, None, None

    def __call__(self, function, *arguments):
        """What the function returns."""
        if self.process is None:
            context = get_context("spawn")
            self.link, other = context.Pipe()
            self.process = context.Process(target=_serve, args=(other, self.modules), daemon=True)
            self.process.start()
            other.close()
            self.link.recv()  # it has imported what it needs
        what = f"{function.__name__} of {str(arguments)[:2000]}"
        self.link.send((function, arguments, dict(os.environ), os.getcwd()))
        if not self.link.poll(self.patience):
            self.end()
            raise AssertionError(f"no end in {self.patience:g} s: {what}")
        try:
            found, error, seconds = self.link.recv()
        except EOFError:
            self.end()
            raise AssertionError(f"the process died: {what}") from None
        assert error is None, f"{what}\n{error}"
        assert seconds < SECONDS, f"{seconds:.0f} s of CPU: {what}"
        return found

    def end(self):
        """End the process and those that it forked."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.join()
            self.link.close()
            self.process = None


def _serve(link, modules):
    os.setsid()
    for name in (*MODULES, *modules):
        importlib.import_module(name)
    link.send("ready")
    while True:
        try:
            function, arguments, environment, folder = link.recv()
        except EOFError:
            return
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        begun, found, error = time.process_time(), None, None
        try:
            found = function(*arguments)
        except Exception:
            error = traceback.format_exc()
        link.send((found, error, time.process_time() - begun))


def command(*arguments):
    """The command line."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = main_code(*arguments)
    return Ended(code, out.getvalue())


def main_code(*arguments):
    """The exit code of the command line."""
    from dpmask.cli import main

    try:
        return main([str(argument) for argument in arguments]) or 0
    except SystemExit as end:
        return end.code or 0


class Fork(NamedTuple):
    """A copy of this process that works on its own. This process must have no other thread when it forks."""

    pid: int
    out: io.IOBase
    megabytes: float  # when it began: pages of files are not copied with a process

    @classmethod
    def of(cls, function, *arguments):
        """Begin; what the function returns is the exit code."""
        out, (here, there) = tempfile.TemporaryFile(), os.pipe()  # noqa: SIM115 - closed when it has ended
        pid = os.fork()
        if pid:
            os.close(there)
            with os.fdopen(here) as told:
                return cls(pid, out, float(told.read()))
        code = 70
        try:
            os.write(there, str(_resident()).encode())
            os.close(there)
            for number in (1, 2):
                os.dup2(out.fileno(), number)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            code = function(*arguments)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)

    def ended(self):
        """Wait for its end."""
        _, status, used = os.wait4(self.pid, 0)
        with self.out:
            self.out.seek(0)
            text = self.out.read().decode()
        grown = used.ru_maxrss / 1024 - self.megabytes
        return Ended(os.waitstatus_to_exitcode(status), text, used.ru_utime + used.ru_stime, grown)


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def forked(function, *arguments):
    """How a function ends that is called in a fork of this process."""
    return Fork.of(function, *arguments).ended()


def killed_after(seconds, function, *arguments):
    """The same, killed after some time unless it has ended by then."""
    fork = Fork.of(function, *arguments)
    time.sleep(seconds)
    os.kill(fork.pid, signal.SIGKILL)  # until its end is waited for it is there, if only as a zombie
    return fork.ended()


def at_once(function, *given):
    """How several calls of a function end that work at the same time."""
    return [fork.ended() for fork in [Fork.of(function, *arguments) for arguments in given]]
