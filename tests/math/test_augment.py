"""Augmentation keeps shape and meaning, and draws only from the given generator."""

import math

import pytest
import torch

from coterie.math.augment import affine, dropout_rows, feature_noise, jitter, surround, transforms


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(b=10, c=1, h=12, w=12):
    return torch.rand(b, c, h, w, generator=generator(7))


@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (7, 3, 9, 5), (64, 1, 28, 28), (33, 2, 6, 6)])
@pytest.mark.parametrize("groups", [1, 4, 32, 1000])
def test_affine_keeps_the_shape(shape, groups):
    before = images(*shape)
    after = affine(before, generator(), groups=groups)
    assert after.shape == before.shape and after.dtype == before.dtype
    assert not torch.equal(after, before)
    assert after.min() >= 0 and after.max() <= 1


def test_affine_without_strength_is_the_identity():
    before = images()
    assert torch.equal(affine(before, generator(), rotate=0, shift=0, scale=0, shear=0), before)
    almost = affine(before, generator(), rotate=1e-5, shift=0, scale=0, shear=0)
    torch.testing.assert_close(almost, before, atol=1e-4, rtol=0)
    assert affine(before[:0], generator()).shape == (0, 1, 12, 12)


def test_affine_rotates_about_the_middle_in_pixels():
    # a quarter turn of a tall image: a transform that forgot the aspect would squeeze it
    theta = transforms(200, 20, 10, generator(), 90.0, 0, 0, 0)
    pixel = torch.tensor([5.0, 10.0])  # half the sides, w and h
    linear = theta[:, :, :2] * pixel[None, :, None] / pixel[None, None, :]
    eye = torch.eye(2).expand(200, 2, 2)
    torch.testing.assert_close(linear @ linear.transpose(1, 2), eye, atol=1e-5, rtol=0)
    angles = torch.atan2(linear[:, 1, 0], linear[:, 0, 0])
    assert angles.abs().max() <= math.pi / 2 + 1e-5
    assert angles.min() < -1 and angles.max() > 1


def test_affine_shifts_within_bounds_and_fills_with_zeros():
    before = torch.zeros(200, 1, 21, 21)
    before[:, :, 10, 10] = 1
    after = affine(before, generator(), rotate=0, shift=0.2, scale=0, shear=0, groups=200)
    at = torch.arange(21.0)
    y = (after.sum(dim=(1, 3)) * at).sum(dim=1) / after.sum(dim=(1, 2, 3))
    assert (y - 10).abs().max() <= 0.2 * 21 + 0.6
    assert (y - 10).abs().max() > 3
    full = affine(torch.ones(50, 1, 8, 8), generator(), shift=0.5, groups=50)
    assert full.amin() == 0


def test_affine_scales_either_way():
    before = torch.zeros(100, 1, 20, 20)
    before[:, :, 5:15, 5:15] = 1
    after = affine(before, generator(), rotate=0, shift=0, scale=0.3, shear=0, groups=100)
    area = after.sum(dim=(1, 2, 3)) / 100
    assert area.min() < 0.7 and area.max() > 1.3
    assert area.min() > 0.45 and area.max() < 1.75


def test_groups_share_one_transform_and_neighbours_do_not_mix():
    before = images(1).expand(12, 1, 12, 12)
    after = affine(before, generator(), groups=4)
    assert len(after.flatten(1).unique(dim=0)) == 4
    for first in (0, 3, 6, 9):
        assert torch.equal(after[first], after[first + 1])
    alone = affine(images(12), generator(), groups=4)
    changed = images(12)
    changed[5] = 0
    again = affine(changed, generator(), groups=4)
    same = (alone == again).flatten(1).all(dim=1)
    assert same.tolist() == [i != 5 for i in range(12)]


@pytest.mark.parametrize(
    "change",
    [
        affine,
        lambda x, g: jitter(x, g, 0.2, 0.3, 0.1),
        lambda x, g: feature_noise(x, g, 0.5),
        lambda x, g: dropout_rows(x, g, 0.3),
    ],
    ids=["affine", "jitter", "noise", "dropout"],
)
def test_same_generator_same_bits_and_nothing_else_touched(change):
    before, copy, state = images(), images(), torch.get_rng_state()
    first = change(before, generator(1))
    assert torch.equal(first, change(before, generator(1)))
    assert not torch.equal(first, change(before, generator(2)))
    assert torch.equal(before, copy) and torch.equal(torch.get_rng_state(), state)


def test_zero_strength_is_the_identity():
    x = images()
    assert torch.equal(jitter(x, generator()), x)
    assert torch.equal(feature_noise(x, generator(), 0.0), x)
    assert torch.equal(dropout_rows(x, generator(), 0.0), x)


def test_jitter_changes_a_whole_image_at_once():
    x = images(200)
    brighter = jitter(x, generator(), brightness=0.2) - x
    spread = brighter.amax(dim=(1, 2, 3)) - brighter.amin(dim=(1, 2, 3))
    assert spread.max() < 1e-6 and 0.15 < brighter.max() <= 0.2 + 1e-6
    contrast = jitter(x, generator(), contrast=0.5)
    torch.testing.assert_close(contrast.mean(dim=(1, 2, 3)), x.mean(dim=(1, 2, 3)))
    ratio = contrast.std(dim=(1, 2, 3)) / x.std(dim=(1, 2, 3))
    assert 0.5 <= ratio.min() < 0.6 and 1.4 < ratio.max() <= 1.5 + 1e-5


def test_noise_and_dropout_have_the_asked_strength():
    x = torch.ones(200, 100)
    assert float(feature_noise(x, generator(), 0.5).std()) == pytest.approx(0.5, rel=0.05)
    per_feature = feature_noise(x, generator(), torch.linspace(0, 1, 100)).std(dim=0)
    assert per_feature[0] == 0 and float(per_feature[-1]) == pytest.approx(1, rel=0.2)
    dropped = dropout_rows(x, generator(), 0.3)
    assert set(dropped.unique().tolist()) == {0.0, 1.0}
    assert float(dropped.mean()) == pytest.approx(0.7, abs=0.02)


def test_what_lies_around_images():
    digit = torch.zeros(5, 1, 8, 8)
    digit[:, :, 2:, 3:5] = 1.0  # reaches the lower border
    assert surround(digit) == "zeros" and surround(digit + 0.01) == "zeros"
    assert surround(1 - digit) == "border" and surround(2 * digit - 1) == "border"
    assert surround(torch.rand(5, 3, 8, 6, generator=generator())) == "border"


def test_a_border_that_goes_on_brings_nothing_new():
    flat = torch.full((50, 3, 8, 8), 0.7)
    after = affine(flat, generator(), shift=0.5, groups=50, outside="border")
    assert torch.allclose(after, flat)
    sloped = torch.linspace(0, 1, 8).expand(50, 1, 8, 8)
    after = affine(sloped, generator(), rotate=0, shift=0.5, scale=0, shear=0, outside="border")
    assert (after.diff(dim=3) >= -1e-6).all()  # with zeros it would fall at the right end
