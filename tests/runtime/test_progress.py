"""What a fit shows while it runs."""

import contextlib
import io
import re
import subprocess
import sys

from coterie.runtime.progress import Progress, describe


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def told(self):
        """What was written, without the codes for colours and the cursor."""
        return re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", self.getvalue())


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


def test_terminal_shows_one_panel():
    out = Terminal()
    walk(Progress(1, stream=out))
    told = out.told()
    assert "pretrain" in told and "init" in told and "a note with [brackets]" in told
    assert "\n\npretrain" not in told and "2 epochs" not in told  # no plain lines


def test_panel_has_time_left_losses_and_sizes():
    out = Terminal()
    progress = Progress(1, stream=out)
    progress.phase("train", 4, 40)
    progress.step(20)
    progress.epoch({"phase": "train", "epoch": 2, "kl": 0.125, "seconds": 1.0})
    progress.sizes([0.5, 0.0, 0.3, 0.2])
    panel = progress._display
    panel.begun -= 60  # half of the steps took a minute
    panel.live.refresh()
    progress.close()
    told = out.told()
    assert "50%" in told and "1:00 left" in told and "kl 0.125" in told and "epoch 2 of 4" in told
    assert "3 clusters" in told and "████████████  50%" in told


def test_panel_of_many_clusters_is_short():
    out = Terminal()
    progress = Progress(1, stream=out)
    progress.phase("train", 1, 1)
    progress.sizes([1 / 300] * 300)
    progress.close()
    assert len(out.told().splitlines()) < 30 and "20 largest" in out.told()


def test_panel_of_a_fit_that_broke_has_no_tick():
    out = Terminal()
    with contextlib.suppress(ValueError), Progress(1, stream=out) as progress:
        progress.phase("train", 1, 10)
        raise ValueError
    assert "✓" not in out.told()


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
