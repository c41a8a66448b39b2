"""Random changes that should not change a row's cluster. All draw from the given generator."""

import math

import torch
from torch.nn.functional import affine_grid, grid_sample

DARK = 0.02  # share of the brightest value up to which a pixel counts as background


def affine(
    images, generator, rotate=12.0, shift=0.08, scale=0.10, shear=8.0, groups=32, outside="zeros"
):
    """Random affine images, (b, c, h, w) -> (b, c, h, w).

    Parameters
    ----------
    outside : what lies around an image: "zeros", or "border", which goes on; see `surround`.
    rotate, shear : largest angle in degrees, either way.
    shift : largest shift as a share of the side, either way.
    scale : the size is multiplied by a factor in 1 +- scale.
    groups : transforms drawn per batch. Neighbours in a group share one: they pass as channels of
        one picture, so the interpolation weights are worked out once for all of them.
    """
    if not (rotate or shift or scale or shear) or len(images) == 0:
        return images
    b, c, h, w = images.shape
    groups = max(1, min(groups, b))
    each = -(-b // groups)
    groups = -(-b // each)
    short = groups * each - b  # the last group is filled up with images that are dropped again
    stacked = torch.cat([images, images[:short]]) if short else images
    stacked = stacked.reshape(groups, each * c, h, w)
    theta = transforms(groups, h, w, generator, rotate, shift, scale, shear)
    return moved(stacked, theta, outside).view(groups * each, c, h, w)[:b]


def surround(images):  # (b, c, h, w) -> str
    """What lies around images: "zeros" if at least half of their border is that, else "border".

    Digits lie on black. Faces and street scenes fill the picture: a black wedge where they were
    turned is larger than what tells two of them apart.
    """
    sides = [images[:, :, [0, -1], :], images[:, :, :, [0, -1]]]
    border = torch.cat([side.flatten(1) for side in sides], 1)
    dark = border.abs() <= DARK * images.abs().amax()
    return "zeros" if float(dark.float().mean()) >= 0.5 else "border"


def moved(images, theta, outside="zeros"):  # (b, c, h, w), (b, 2, 3) -> (b, c, h, w)
    """Each image under its own transform."""
    theta = theta.to(images.device, images.dtype)
    grid = affine_grid(theta, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode=outside, align_corners=False)


def transforms(count, h, w, generator, rotate=12.0, shift=0.08, scale=0.10, shear=8.0):
    """Random maps from output to input, (count, 2, 3), in the coordinates of grid_sample."""
    draw = 2 * torch.rand(5, count, generator=generator) - 1
    angle, slant = draw[0] * math.radians(rotate), draw[1] * math.radians(shear)
    size = 1 + draw[2] * scale
    cos, sin, tan = angle.cos() / size, angle.sin() / size, slant.tan()
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 0, 1] = cos, (cos * tan - sin) * (h / w)
    theta[:, 1, 0], theta[:, 1, 1] = sin * (w / h), sin * tan + cos
    theta[:, :, 2] = 2 * shift * draw[3:].T
    return theta


def jitter(images, generator, brightness=0.0, contrast=0.0, noise=0.0):
    """Random brightness, contrast and pixel noise, (b, c, h, w) -> (b, c, h, w).

    Parameters
    ----------
    brightness : largest value added to a whole image, either way.
    contrast : differences from the image's mean are multiplied by a factor in 1 +- contrast.
    noise : standard deviation of noise added to each pixel.
    """
    draw = 2 * torch.rand(2, len(images), 1, 1, 1, generator=generator) - 1
    draw = draw.to(images.device, images.dtype)
    if contrast:
        mean = images.mean(dim=(1, 2, 3), keepdim=True)
        images = mean + (images - mean) * (1 + contrast * draw[0])
    if brightness:
        images = images + brightness * draw[1]
    return feature_noise(images, generator, noise)


def feature_noise(x, generator, sd):  # any shape -> same shape
    """Add normal noise with standard deviation sd (a number, or one for each feature)."""
    if not torch.is_tensor(sd) and not sd:
        return x
    return x + sd * torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)


def dropout_rows(x, generator, share):  # (n, d) -> (n, d)
    """Set a random share of each row's entries to 0: a text that lost some of its words.

    The rest is not scaled up: a lost word does not make the others more frequent.
    """
    if not share:
        return x
    keep = torch.rand(x.shape, generator=generator) >= share
    return x * keep.to(x.device)
