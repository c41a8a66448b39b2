"""What a fit shows while it runs."""

import io
import subprocess
import sys

from coterie.runtime.progress import Progress, describe


class Terminal(io.StringIO):
    def isatty(self):
        return True


def walk(progress):
    progress.phase("pretrain", 2, 20)
    for step in range(20):
        progress.step(step + 1)
    progress.epoch({"phase": "pretrain", "epoch": 1, "recon": 1.23456, "seconds": 0.1})
    progress.note("a note with [brackets]")
    progress.phase("init")
    progress.close()


def test_plain_lines_are_few():
    out = io.StringIO()
    walk(Progress(1, stream=out))
    assert out.getvalue() == "pretrain: 2 epochs\na note with [brackets]\ninit\n"


def test_terminal_shows_phases_and_numbers():
    out = Terminal()
    walk(Progress(1, stream=out))
    told = out.getvalue()
    assert "pretrain" in told and "init" in told and "a note with [brackets]" in told


def test_callback_gets_the_record():
    seen = []
    walk(Progress(0, seen.append))
    assert seen[0]["recon"] == 1.23456


def test_describe_leaves_out_what_is_shown_elsewhere():
    record = {"phase": "train", "epoch": 3, "kl": 0.12345, "clusters_used": 10, "seconds": 2.0}
    assert describe(record) == "epoch 3  kl 0.1235  clusters_used 10"


def test_silence_costs_nothing():
    code = (
        "import sys; from coterie.runtime.progress import Progress\n"
        "with Progress(0) as p: p.phase('a', 1, 1); p.step(1); p.epoch({}); p.note('x')\n"
        "sys.exit('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == done.stderr == ""
