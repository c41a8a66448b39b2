"""Colours of groups stay apart for every kind of eye."""

import numpy as np
import pytest

from coterie.palette import PALETTE, color, slot

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
EYES = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(hexes):  # list of #rrggbb -> (n, 3)
    s = np.array([[int(h[i : i + 2], 16) for i in (1, 3, 5)] for h in hexes]) / 255
    return np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)


def oklab(rgb):  # linear RGB -> OKLab (Ottosson 2020)
    lms = rgb @ np.transpose(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    return np.cbrt(np.maximum(lms, 0)) @ np.transpose(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )


@pytest.mark.parametrize("eye", EYES)
def test_twenty_colours_stay_apart(eye):
    lab = oklab(np.clip(linear(PALETTE) @ np.transpose(EYES[eye]), 0, 1))
    distance = np.linalg.norm(lab[:, None] - lab, axis=2) + 9 * np.eye(20)
    # about three just noticeable differences; blue-yellow deficiency is rare and gets a bit less
    assert distance.min() > (0.05 if eye == "tritan" else 0.06)


@pytest.mark.parametrize("paper", ["#ffffff", "#14171b"])
def test_every_colour_shows_on_both_papers(paper):
    lab = oklab(linear([paper, *PALETTE]))
    assert np.linalg.norm(lab[1:] - lab[0], axis=1).min() > 0.14


def test_colours_come_round_after_twenty():
    assert len(set(PALETTE)) == 20
    assert color(21) == color(1) and slot(41) == 1
