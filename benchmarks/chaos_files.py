"""Campaigns of chaos.py that end or fill: kills, full disks, two writers at once."""

import resource
import shutil
from pathlib import Path

import numpy as np
from chaos_tools import (
    FULL,
    METHODS,
    Child,
    Workshop,
    command,
    die,
    hurt_operations,
    launch,
    mounted,
    named,
    result,
)

OLD = "kmeans"  # the method of the run that is overwritten


def old_run(shop: Workshop, out: Path) -> dict:
    """Put a finished run where another one shall replace it."""
    whole = shop.undisturbed(OLD)
    shutil.copytree(shop.folder / f"whole-{OLD}", out)
    return whole


def standing(out: Path, allowed: list[dict]) -> str:
    """What is wrong with a folder that must hold one of the allowed results; "" if nothing is."""

    def check():
        from coterie.storage import runs

        run = runs.read(out)
        run.verify()
        return len(run.labels)

    state, value = Child(check).wait()
    if state != "done":
        return f"the run is lost ({state}: {value})"
    return "" if result(out) in allowed else "the run holds other results"


def go_on(shop: Workshop, method: str, out: Path, overwrite: bool) -> tuple[str, object]:
    """Finish what was stopped, as its user would."""
    from coterie.storage import runs

    begun = runs.working_folder(out)
    unfinished = runs.peek(begun) if begun != out else None
    meta = unfinished or runs.peek(out)
    if meta is not None and (unfinished or meta["status"] != "done"):
        words = ["fit", "--resume", "--out", out, "--no-baseline", "--quiet"]
    elif meta is not None and not overwrite:
        return "done", [0, ""]
    else:
        words = shop.words(method, out, *(["--overwrite"] if overwrite else []))
    return Child(lambda: command(words)).wait()


def kills(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """kill -9 by the clock or before an operation on files, up to three times; then go on."""
    method, overwrite = str(rng.choice(METHODS)), bool(rng.integers(2))
    whole = shop.undisturbed(method)
    out = shop.fresh("killed")
    allowed = [whole] + ([old_run(shop, out)] if overwrite else [])
    again = ["--overwrite"] if overwrite else []
    done = 0
    for turn in range(int(rng.integers(1, 4))):
        words = shop.words(method, out, *again)
        begun = out / ".coterie-new/run.toml" if overwrite else out / "run.toml"
        if turn and begun.exists():
            words = ["fit", "--resume", "--out", out, "--no-baseline", "--quiet"]
        if rng.integers(2):
            child, signal = Child(lambda w=words: command(w)), int(rng.choice([9, 9, 15, 2]))
            state, value = child.wait(rng.uniform(0, 1.1) * shop.seconds[method], signal)
        else:
            at = int(rng.integers(1, 120))
            child = Child(lambda w=words, n=at: (hurt_operations(n, die), command(w))[1])
            state, value = child.wait()
        done += state.startswith("signal") or bool(value and value[0] == 130)
        if overwrite and (wrong := standing(out, allowed)):
            return f"wrong: {method} overwriting: {wrong}"
    state, value = go_on(shop, method, out, overwrite)
    if state != "done" or value[0] != 0:
        return f"unnamed: {method}: going on ended with {state}: {value}"
    if overwrite and result(out) != whole:  # it was the old run that stood
        state, value = Child(lambda: command(shop.words(method, out, "--overwrite"))).wait()
    if wrong := standing(out, [whole]):
        return f"wrong: {method}{' overwriting' * overwrite}: {wrong}"
    left = [p.name for p in out.iterdir() if p.name.startswith(".coterie")]
    return f"wrong: {method}: {left} left behind" if left else f"events: {done}"


def ranks(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """kill -9 of one of two processes that share a fit, at any moment; both start again."""
    method = str(rng.choice(("dec", "dkm", "ae_kmeans", "cnet")))
    whole, seconds = shop.shared(method)
    out = shop.fresh("shared")
    victim, moment = int(rng.integers(2)), float(rng.uniform(0.3, 1)) * seconds
    codes = launch(shop.words(method, out, "--resume"), (victim, moment))
    killed = codes[victim] == -9
    codes = launch(shop.words(method, out, "--resume"))
    if codes != [0, 0]:
        return f"unnamed: {method}: started again, the two end with {codes}"
    if wrong := standing(out, [whole]):
        return f"wrong: {method}: rank {victim} killed after {moment:.2f} s: {wrong}"
    return f"events: {int(killed)}"


def full(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """The disk is full from some moment on: a small file system, a limit on files, or ENOSPC."""
    method, overwrite = str(rng.choice(METHODS)), bool(rng.integers(2))
    whole = shop.undisturbed(method)
    out = shop.fresh("full")
    how = ("small", "limit", "sync")[int(rng.integers(3))]
    unmount = (
        mounted(out.parent / "small", int(rng.integers(4, 200)) << 10) if how == "small" else None
    )
    try:
        if unmount:
            out = out.parent / "small" / "run"
        try:
            old = old_run(shop, out) if overwrite else None
        except OSError:  # no room for the old run either
            return "skipped"

        def fit():
            if how == "limit":
                most = int(rng.integers(100, 30_000))
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            elif how == "sync":
                signal_full = int(rng.integers(1, 60))
                hurt_operations(signal_full, lambda due: FULL, ("fsync", "mkdir"))
            return command(shop.words(method, out, *(["--overwrite"] if overwrite else [])))

        state, value = Child(fit).wait()
        where = f"{method}{' overwriting' * overwrite} ({how})"
        if state != "done":
            return f"unnamed: {where}: {state}: {value}"
        if value[0] != 0 and not named(*value):
            return f"unnamed: {where}: {value}"
        if old is not None and (wrong := standing(out, [old, whole])):
            return f"wrong: {where}: {wrong}"
        if value[0] == 0 and (wrong := standing(out, [whole])):
            return f"wrong: {where}: {wrong}"
        if unmount:
            return ""
        state, value = go_on(shop, method, out, overwrite)
        if overwrite and result(out) == old:
            state, value = Child(lambda: command(shop.words(method, out, "--overwrite"))).wait()
        if wrong := standing(out, [whole]):
            return f"wrong: {where}, with room again: {wrong} ({state}: {value})"
        return ""
    finally:
        if unmount:
            unmount()


def races(shop: Workshop, rng: np.random.Generator, trial: int) -> str:
    """Two processes on one folder at once, and now and then one of them is killed."""
    methods = [str(m) for m in rng.choice(METHODS, 2, replace=False)]
    overwrite = bool(rng.integers(2))
    allowed = [shop.undisturbed(m) for m in methods]
    out = shop.fresh("raced")
    flags = ["--overwrite"] if overwrite else []
    if overwrite:
        allowed.append(old_run(shop, out))
    children = [Child(lambda m=m: command(shop.words(m, out, *flags))) for m in methods]
    if rng.integers(4) == 0:
        children[0].wait(float(rng.uniform(0, 0.5)) * shop.seconds[methods[0]])
        ended = [("signal 9", None), children[1].wait()]
    else:
        ended = [child.wait() for child in children]
    for state, value in ended:
        if state == "signal 9":
            continue
        if state != "done" or (value[0] != 0 and not named(*value)):
            return f"unnamed: {methods}: {state}: {value}"
    there = overwrite or any(value and value[0] == 0 for _, value in ended)
    wrong = standing(out, allowed) if there else ""
    return f"wrong: {methods}{' overwriting' * overwrite}: {wrong}" if wrong else ""
