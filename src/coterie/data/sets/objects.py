"""OBJECTS: spheres, cubes and cylinders under random light, drawn by a small ray caster.

The camera looks down on a floor under a fixed angle with parallel rays. Each image holds one
body, slightly moved, scaled and (the cube) turned; one lamp somewhere above gives Lambert light
on body and floor. Shape is what clusters; the light is what all images share.

Vectors are tuples (x, y, z) of float32 arrays (b, p), images by rays: x to the right, y away from
us, z up.
"""

from __future__ import annotations

import numpy as np

SHAPES = ("sphere", "cube", "cylinder")
SIDE = 64
_GRAIN = 2  # rays per pixel side
_VIEW = 3.2  # width of what the camera sees
_BATCH = 4  # images at once: small enough for the processor's cache
_FAR = np.float32(1e6)
_TILT = np.deg2rad(35)  # how steeply the camera looks down
_DY, _DZ = np.float32(np.cos(_TILT)), np.float32(-np.sin(_TILT))  # direction of all rays
_AMBIENT, _LAMP = np.float32(0.62), np.float32(0.40)
_BODY, _FLOOR = np.float32(0.90), np.float32(0.14)  # how much light each throws back


def objects(n: int = 10_000, seed: int = 0):  # -> (n, 64, 64) uint8, (n,) int64
    """Return grey images and their shapes (0 sphere, 1 cube, 2 cylinder), in random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3)
    scene = {
        "right": rng.uniform(-0.03, 0.03, n),
        "away": rng.uniform(-0.03, 0.03, n),
        "size": rng.uniform(0.97, 1.03, n),
        "turn": rng.uniform(np.deg2rad(40), np.deg2rad(50), n),  # an edge towards us
        "angle": rng.uniform(0, 2 * np.pi, n),  # of the lamp around the scene
        "height": rng.uniform(np.deg2rad(30), np.deg2rad(75), n),  # of the lamp above the floor
        "power": rng.uniform(0.8, 1.2, n),
    }
    columns = {key: values.astype(np.float32)[:, None] for key, values in scene.items()}
    X = np.empty((n, SIDE, SIDE), np.uint8)
    for shape in range(3):
        rows = np.flatnonzero(labels == shape)
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            X[part] = _render(shape, {key: values[part] for key, values in columns.items()})
    return X, labels


def _render(shape: int, scene: dict) -> np.ndarray:  # -> (b, 64, 64) uint8
    """Cast the rays, light what they hit, and average the rays of each pixel."""
    x, y, z = _rays(SIDE * _GRAIN)
    size = scene["size"]
    # in the frame of the body: unit size, its middle at 0, standing on the floor z = 0
    origin = (x - scene["right"]) / size, (y - scene["away"]) / size, z / size - np.float32(0.8)
    depth, normal = (_sphere, _cube, _cylinder)[shape](origin, scene["turn"])
    image, ray = np.nonzero(depth < _FAR)
    depth = depth[image, ray] * size[image, 0]
    point = x[0, ray], y[0, ray] + depth * _DY, z[0, ray] + depth * _DZ
    lamp = _lamp(scene)
    body, hit = np.zeros((2, len(size), SIDE * SIDE * _GRAIN**2), np.float32)
    there = tuple(values[image, 0] for values in lamp)
    light = _light(point, tuple(side[image, ray] for side in normal), there)
    body[image, ray] = np.minimum(_BODY * light, 1)
    hit[image, ray] = 1
    body, hit = (_pixels(rays) for rays in (body, hit))
    # the floor is smooth: one ray per pixel is enough
    x, y, z = _rays(SIDE)
    floor = _light((x, y - z / _DZ * _DY, np.zeros_like(z)), (0, 0, 1), lamp)
    grey = body + (1 - hit) * np.minimum(_FLOOR * floor, 1).reshape(-1, SIDE, SIDE)
    return (255 * grey + np.float32(0.5)).astype(np.uint8)


def _rays(side: int):
    """Return where the rays start, in a plane that faces the camera: x, y, z of (1, side**2)."""
    across = ((np.arange(side) + 0.5) / side - 0.5).astype(np.float32) * np.float32(_VIEW)
    x, up = (plane.reshape(1, -1) for plane in np.meshgrid(across, -across))
    return x, -up * _DZ, up * _DY + np.float32(0.62)


def _pixels(rays):  # (b, p) -> (b, 64, 64)
    rows = rays.reshape(-1, SIDE, _GRAIN, SIDE * _GRAIN).sum(2)
    return sum(rows[:, :, grain::_GRAIN] for grain in range(_GRAIN)) / np.float32(_GRAIN**2)


def _lamp(scene: dict):
    """Return x, y, z and strength of the lamp, at distance 4, each (b, 1)."""
    flat = 4 * np.cos(scene["height"])
    x, y = flat * np.cos(scene["angle"]), flat * np.sin(scene["angle"])
    return x, y, 4 * np.sin(scene["height"]), _LAMP * scene["power"]


def _light(point, normal, lamp) -> np.ndarray:
    """Ambient light plus Lambert's law, weaker with the square of the distance."""
    towards = tuple(there - here for there, here in zip(lamp, point))
    square = _dot(towards, towards)
    cosine = _dot(normal, towards) / np.sqrt(square)
    return _AMBIENT + lamp[3] * np.maximum(cosine, 0) * (16 / square)


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _sphere(origin, turn, radius=0.8):  # -> depth (b, p), normal
    x, y, z = origin
    half = y * _DY + z * _DZ
    under = half**2 - _dot(origin, origin) + radius**2
    depth = np.where(under > 0, -half - np.sqrt(np.maximum(under, 0)), _FAR)
    return depth, (x / radius, (y + depth * _DY) / radius, (z + depth * _DZ) / radius)


def _cube(origin, turn, half=0.8):
    """Slabs: the ray is inside between the last entry and the first exit."""
    x, y, z = origin
    cos, sin = np.cos(turn), np.sin(turn)
    ray = sin * _DY, cos * _DY, np.full_like(turn, _DZ)
    turned = cos * x + sin * y, cos * y - sin * x, z
    signs = tuple(np.sign(d) for d in ray)
    near = [(-half * s - o) / d for s, o, d in zip(signs, turned, ray)]
    far = [(half * s - o) / d for s, o, d in zip(signs, turned, ray)]
    enter = np.maximum(np.maximum(near[0], near[1]), near[2])
    leave = np.minimum(np.minimum(far[0], far[1]), far[2])
    a, b, c = (np.where(enter == entry, -s, 0) for entry, s in zip(near, signs))
    return np.where(enter < leave, enter, _FAR), (cos * a - sin * b, sin * a + cos * b, c)


def _cylinder(origin, turn, radius=0.5, half=0.8):
    """An upright tube with a lid; from above its foot is never seen."""
    x, y, z = origin
    under = radius**2 - x**2
    side = (-y - np.sqrt(np.maximum(under, 0))) / _DY
    on_side = (under > 0) & (np.abs(z + side * _DZ) <= half)
    lid = (half - z) / _DZ
    on_lid = x**2 + (y + lid * _DY) ** 2 <= radius**2
    depth = np.where(on_lid, lid, np.where(on_side, side, _FAR))
    upright = np.where(on_lid, np.float32(0), 1 / radius)
    return depth, (x * upright, (y + depth * _DY) * upright, on_lid.astype(np.float32))
