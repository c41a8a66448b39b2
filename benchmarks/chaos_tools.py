"""What the campaigns of chaos.py share: children that may die, and a workshop of files to break."""

import contextlib
import ctypes
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

GRACE = 10.0
HANG = 120.0  # seconds after which a child counts as hanging
FULL = OSError(28, "No space left on device")
OPERATIONS = ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir")
METHODS = ("kmeans", "dec", "dkm", "ae_kmeans", "cnet", "acedec", "kith", "cm")


class Child:
    """A forked process that runs a function and hands back its value; it may be killed."""

    def __init__(self, function):
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writer)
            return
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.close(self.reader)
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, 1)
            os.dup2(sink, 2)
            value = json.dumps(function()).encode()
            with open(writer, "wb") as out:
                out.write(value)
            code = 0
        except BaseException:
            with contextlib.suppress(OSError):
                os.write(writer, json.dumps(traceback.format_exc()[-600:]).encode())
        finally:
            os._exit(code)

    def wait(self, kill_after: float | None = None, by: int = signal.SIGKILL):
        """("done", value), ("raised", traceback), ("signal 11", None) or ("hang", None)."""
        begin, limit = time.monotonic(), HANG if kill_after is None else kill_after
        status = None
        while time.monotonic() - begin < limit:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.001)
        else:
            os.kill(self.pid, by if kill_after is not None else signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            if kill_after is None:
                os.close(self.reader)
                return "hang", None
        with open(self.reader, "rb") as file:
            said = file.read()
        if os.WIFSIGNALED(status):
            return f"signal {os.WTERMSIG(status)}", None
        value = json.loads(said) if said else None
        return ("done" if os.WEXITSTATUS(status) == 0 else "raised"), value


def warm_up() -> None:
    """Fit and read once, so that no child has to import anything."""
    from importlib import import_module

    from coterie import registry

    X = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    with quiet():
        for key in METHODS:
            registry.get(key)(3, random_state=0, **registry.get(key).tiny).fit(X)
    for name in ("coterie.cli.fit", "coterie.cli.predict", "coterie.data.folders", "PIL.Image"):
        import_module(name)
    with contextlib.suppress(ImportError):
        import_module("pyarrow.parquet")


def command(words) -> tuple[int, str]:
    """Exit code and standard error of a coterie command in this process."""
    from coterie.cli import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    return code, said.getvalue()


def named(code: int, said: str) -> bool:
    """Whether a command that failed has told why in words of ours."""
    return code == 2 and said.startswith("coterie: ") and "Traceback" not in said


def hurt_operations(when: int, action, names=OPERATIONS):
    """Call `action` in place of the operation on files with the number `when` (from 1)."""
    count = [0]

    def wrap(function):
        def call(*args, **kwargs):
            count[0] += 1
            if count[0] >= when and (instead := action(count[0] == when)):
                raise instead
            return function(*args, **kwargs)

        return call

    for name in names:
        setattr(os, name, wrap(getattr(os, name)))
    return count


def die(due: bool):
    if due:
        os.kill(os.getpid(), signal.SIGKILL)


class Workshop:
    """A folder with data, undisturbed runs of several methods, and one file of each format."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(90, 5)) + 5 * np.repeat(np.arange(3), 30)[:, None]
        self.data = folder / "x.csv"
        lines = [",".join(["name", "a", "b", "c", "d", "e"])]
        lines += [",".join([f"row{i}", *(f"{v:.4f}" for v in row)]) for i, row in enumerate(X)]
        self.data.write_text("\n".join(lines) + "\n")
        self.whole, self.seconds = {}, {}

    def words(self, method: str, out: Path, *more) -> list:
        """The command that fits a method in a moment."""
        from coterie import registry
        from coterie.storage.atomic import write_toml

        config = self.folder / f"{method}.toml"
        if not config.exists():
            cls = registry.get(method)
            known = {"checkpoint_seconds": 0.0} if hasattr(cls, "checkpoint_seconds") else {}
            write_toml(config, {**cls.tiny, **known})
        words = ["fit", self.data, "--id-column", "name", "--method", method, "--clusters", "3"]
        words += ["--config", config, "--no-baseline", "--quiet", "--threads", "1", "--out", out]
        return [*words, *more]

    def undisturbed(self, method: str) -> dict:
        """What a fit leaves that nothing has hurt, and how long it takes."""
        if method not in self.whole:
            out = self.folder / f"whole-{method}"
            shutil.rmtree(out, ignore_errors=True)
            begin = time.monotonic()
            state, value = Child(lambda: command(self.words(method, out))).wait()
            assert (state, value[0]) == ("done", 0), (method, state, value)
            self.seconds[method] = time.monotonic() - begin
            self.whole[method] = result(out)
        return self.whole[method]

    def shared(self, method: str) -> tuple[dict, float]:
        """What a fit leaves that two undisturbed processes share, and how long it takes."""
        if (method, 2) not in self.whole:
            out, begin = self.fresh(f"whole-{method}-2"), time.monotonic()
            codes = launch(self.words(method, out))
            assert codes == [0, 0], (method, codes)
            self.seconds[method, 2] = time.monotonic() - begin
            self.whole[method, 2] = result(out)
        return self.whole[method, 2], self.seconds[method, 2]

    def fresh(self, name: str) -> Path:
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def result(out: Path) -> dict:
    """The bytes of a run that equal runs have in common."""
    names = ("labels.csv", "embedding.npy", "model.safetensors")
    return {name: (out / name).read_bytes() for name in names if (out / name).exists()}


def mounted(folder: Path, size: int):
    """A small file system of its own, where the user may make one."""
    folder.mkdir(parents=True, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    target = os.fsencode(folder)
    if libc.mount(b"tmpfs", target, b"tmpfs", 0, f"size={size}".encode()):
        return None
    return lambda: libc.umount2(target, 2)


def launch(words, kill: tuple[int, float] | None = None) -> list[int | None]:
    """Exit codes of two processes that share a command; one may be killed after some seconds.

    One whose partner was killed is given GRACE and then ended, as torchrun does at once: before
    the two have met, torch waits half an hour for the other. None: it did not end by itself.
    """
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = str(place.getsockname()[1])
    runs, began = [], time.monotonic()
    for rank in range(2):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "RANK": str(rank), "WORLD_SIZE": "2"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "LOCAL_RANK": str(rank)}
        env |= {"LOCAL_WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, "-m", "coterie", *map(str, words)]
        sink = subprocess.DEVNULL
        runs.append(subprocess.Popen(command, env=env, stdout=sink, stderr=sink))
    if kill is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            runs[kill[0]].wait(timeout=max(0.0, began + kill[1] - time.monotonic()))
        runs[kill[0]].kill()
    codes = []
    for run in runs:
        try:
            codes.append(run.wait(timeout=2.5 * HANG if kill is None else GRACE))
        except subprocess.TimeoutExpired:
            run.kill()
            code = run.wait()
            codes.append(None if kill is None else code)
    return codes


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
