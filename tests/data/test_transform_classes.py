"""Transforms as modules, and one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.data import transforms as T
from chainrule.data import transforms_functional as TF
from chainrule.data.augment_policy import CHANGES, POLICIES


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def image(*shape: int, seed: int = 0) -> Any:
    return chainrule.tensor(np.random.default_rng(seed).random(shape))


def bytes_(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


RANDOM = [
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.RandomGrayscale(0.5),
    T.RandomRotation(30),
    T.RandomAffine(10, (0.2, 0.1), (0.8, 1.2), 10, "bilinear"),
    T.RandomCrop(8, padding=2),
    T.RandomResizedCrop(8),
    T.ColorJitter(0.4, 0.4, 0.4, 0.2),
    T.GaussianNoise(),
    T.RandomErasing(0.8, value="random"),
    T.RandAugment(),
    T.AutoAugment("cifar10"),
    T.RandomApply([T.GaussianNoise(sigma=0.3)]),
]


NAMES = [type(t).__name__ for t in RANDOM]


@pytest.mark.parametrize("transform", RANDOM, ids=NAMES)
def test_a_generator_decides(transform: Any) -> None:
    x = image(16, 3, 10, 10).float()
    a, b, c = (transform(x, generator=seeded(s)) for s in (1, 1, 2))
    assert a.tolist() == b.tolist()
    assert a.tolist() != c.tolist()
    assert a.dtype is chainrule.float32
    chainrule.manual_seed(1)
    assert transform(x).tolist() == a.tolist()  # without one, the default generator
    assert transform(x[0], generator=seeded()).shape == a.shape[1:]


@pytest.mark.parametrize("transform", RANDOM, ids=NAMES)
def test_every_image_of_a_batch_has_its_own_draw(transform: Any) -> None:
    same = chainrule.stack([image(3, 10, 10).float()] * 32)
    out = transform(same, generator=seeded(3))
    assert len({str(o.tolist()) for o in out}) > 1


@pytest.mark.parametrize("transform", RANDOM, ids=NAMES)
def test_nothing_is_random_in_evaluation(transform: Any) -> None:
    x = image(2, 3, 8, 8).float()
    transform.eval()
    try:
        assert transform(x).tolist() == x.tolist()
        assert transform(x[0]).tolist() == x[0].tolist()
    finally:
        transform.train()


@pytest.mark.parametrize("transform", RANDOM, ids=NAMES)
def test_bytes_stay_bytes(transform: Any) -> None:
    x = chainrule.tensor(bytes_(4, 3, 10, 10))
    if "Noise" in repr(transform) or "random" in repr(transform):
        with pytest.raises(TypeError, match="expected a floating-point image, got .*uint8"):
            transform(x, generator=seeded(1))
    else:
        assert transform(x).dtype is chainrule.uint8


def test_flips_come_as_often_as_asked() -> None:
    x = chainrule.arange(4.0).reshape(1, 2, 2)
    batch = chainrule.stack([x] * 4000)
    flipped = (T.RandomHorizontalFlip(0.3)(batch, generator=seeded())[:, 0, 0, 0] == 1).float()
    assert abs(flipped.mean().item() - 0.3) < 0.03
    assert T.RandomVerticalFlip(1.0)(x).tolist() == [[[2, 3], [0, 1]]]
    assert T.RandomHorizontalFlip(0.0)(x).tolist() == x.tolist()


def test_mirrored_letters_change_their_meaning() -> None:
    """P14: b becomes d."""
    b = chainrule.tensor([[[1, 0], [1, 1], [1, 1]]])
    d = chainrule.tensor([[[0, 1], [1, 1], [1, 1]]])
    assert T.RandomHorizontalFlip(1.0)(b).tolist() == d.tolist()


def test_rotations_are_within_the_degrees() -> None:
    spot = chainrule.zeros(1, 41, 41)
    spot[0, 20, 38:40] = 1
    out = T.RandomRotation((10, 20), "bilinear")(chainrule.stack([spot] * 200), generator=seeded())
    y, x = np.mgrid[:41, :41]
    mass = out.numpy()[:, 0]
    center_y = (mass * (20 - y)).sum((1, 2)) / mass.sum((1, 2))
    center_x = (mass * (x - 20)).sum((1, 2)) / mass.sum((1, 2))
    angles = np.degrees(np.arctan2(center_y, center_x))
    assert angles.min() > 9.5
    assert angles.max() < 20.5
    assert angles.std() > 2


def test_random_shifts_are_whole_pixels() -> None:
    """P12."""
    spot = chainrule.zeros(1, 21, 11)
    spot[0, 10, 5] = 1
    out = T.RandomAffine(0, translate=(0.2, 0.1))(chainrule.stack([spot] * 300), generator=seeded())
    flat = out.reshape(300, -1)
    assert flat.sum(1).tolist() == [1.0] * 300
    places = flat.argmax(1).numpy()
    assert set(places // 11) == set(range(8, 13))  # 0.1 of 21 pixels is 2
    assert set(places % 11) == set(range(3, 8))  # 0.2 of 11 pixels is 2


def test_random_crops_are_parts() -> None:
    x = chainrule.arange(48).reshape(1, 6, 8)
    out = T.RandomCrop((3, 4))(chainrule.stack([x] * 300), generator=seeded())
    first = out[:, 0, 0, 0]
    offsets = chainrule.arange(3)[:, None] * 8 + chainrule.arange(4)
    assert (out[:, 0] == first[:, None, None] + offsets).all()
    assert set((first // 8).tolist()) == set(range(4))
    assert set((first % 8).tolist()) == set(range(5))
    assert T.RandomCrop(6, pad_if_needed=True)(x[:, :2]).shape == (1, 6, 6)
    assert T.RandomCrop((3, 4)).eval()(x).tolist() == TF.center_crop(x, (3, 4)).tolist()
    with pytest.raises(ValueError, match="a part of 9 by 9 is larger than the image of 6 by 8"):
        T.RandomCrop(9)(x)


def test_random_resized_crops() -> None:
    t = T.RandomResizedCrop((6, 5), scale=(0.25, 0.5), ratio=(0.5, 2))
    boxes = np.array([t._box(20, 30, g) for g in map(seeded, range(300))])
    top, left, h, w = boxes.T
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + h <= 20).all()
    assert (left + w <= 30).all()
    assert ((h * w / 600 > 0.2) & (h * w / 600 < 0.55)).all()
    assert ((w / h > 0.45) & (w / h < 2.2)).all()
    assert t(image(4, 3, 20, 30)).shape == (4, 3, 6, 5)
    assert T.RandomResizedCrop(4, ratio=(20, 20))._box(20, 30, seeded()) == (9, 0, 2, 30)
    x = image(3, 8, 8)
    assert_close(T.RandomResizedCrop(4).eval()(x), TF.resize(x, (4, 4)))


def test_erased_rectangles() -> None:
    x = chainrule.ones(400, 3, 20, 20)
    out = T.RandomErasing(0.5, scale=(0.1, 0.2), value=(0.0, 0.5, 0.25))(x, generator=seeded())
    gone = (out[:, 0] == 0).numpy()
    share = gone.mean((1, 2))
    assert abs((share > 0).mean() - 0.5) < 0.08
    assert (share[share > 0] > 0.08).all()
    assert (share < 0.22).all()
    for mask in gone[share > 0][:50]:
        rows, columns = mask.any(1).sum(), mask.any(0).sum()
        assert rows * columns == mask.sum()  # a rectangle
    assert_close(out[:, 1], 1 - 0.5 * gone.astype(np.float32))


def test_color_jitter_draws_factors() -> None:
    x = chainrule.full((500, 1, 2, 2), 0.5)
    factors = (T.ColorJitter(brightness=0.4)(x, generator=seeded())[:, 0, 0, 0] * 2).numpy()
    assert factors.min() > 0.6
    assert factors.max() < 1.4
    assert abs(factors.mean() - 1) < 0.03
    y = image(3, 4, 4)
    assert T.ColorJitter()(y).tolist() == y.tolist()
    fixed = T.ColorJitter(brightness=(0.5, 0.5), hue=(0.25, 0.25))(y)
    assert_close(fixed, TF.adjust_hue(TF.adjust_brightness(y, 0.5), 0.25), atol=1e-12)


def test_noise_has_its_moments() -> None:
    """P17: noisy copies of the training data."""
    x = chainrule.full((1, 200, 200), 0.5)
    noise = (T.GaussianNoise(0.1, 0.05)(x, generator=seeded()) - x).numpy()
    assert abs(noise.mean() - 0.1) < 1e-3
    assert abs(noise.std() - 0.05) < 1e-3
    assert T.GaussianNoise(sigma=3.0)(x).max() <= 1
    assert T.GaussianNoise(sigma=3.0, clip=False)(x).max() > 1


def test_policies() -> None:
    """P18: 25 pairs of changes, all of them known, learned on each of three datasets."""
    assert {name: len(pairs) for name, pairs in POLICIES.items()} == {
        "imagenet": 25,
        "cifar10": 25,
        "svhn": 25,
    }
    assert POLICIES["cifar10"][1] == (("Rotate", 0.7, 2), ("TranslateX", 0.3, 9))
    assert {step[0] for pairs in POLICIES.values() for pair in pairs for step in pair} <= set(
        CHANGES
    )
    x = chainrule.tensor(bytes_(3, 12, 12))
    for name in CHANGES:
        own = T.AutoAugment([[(name, 1.0, 5)]])
        assert own(x).shape == x.shape
        assert own(x.float() / 255).shape == x.shape
    assert T.AutoAugment([[("Invert", 1.0, None)]])(x).tolist() == (255 - x).tolist()
    assert T.AutoAugment([[("Solarize", 1.0, 9)]])(x).tolist() == (255 - x).tolist()
    assert T.AutoAugment([[("Posterize", 1.0, 9)]])(x).tolist() == (x // 16 * 16).tolist()
    signs = {str(T.AutoAugment([[("Rotate", 1.0, 9)]])(x, seeded(s)).tolist()) for s in range(9)}
    assert signs == {str(TF.rotate(x, a).tolist()) for a in (-30, 30)}
    assert T.RandAugment(num_ops=0)(x).tolist() == x.tolist()


def test_compose_and_functions() -> None:
    x = chainrule.tensor(bytes_(3, 8, 8))
    t = T.Compose([T.ToTensor(), T.Normalize((0.5,) * 3, (0.5,) * 3), lambda x: x * 2])
    assert_close(t(x), (x.numpy() / 127.5 - 1).astype(np.float32) * 2, rtol=1e-5, atol=1e-6)
    assert not t.batched
    assert T.Compose(t.transforms[:2]).batched
    assert "Normalize(mean=[0.5, 0.5, 0.5]" in repr(t)
    picture = T.Compose([T.ToTensor(), T.ToPILImage()])(x)
    assert_close(np.asarray(picture).transpose(2, 0, 1), x)
    with pytest.raises(TypeError, match="transform 1 is a int, which cannot be called"):
        T.Compose([T.ToTensor(), 3])


def test_compose_hands_the_generator_on() -> None:
    t = T.Compose([T.RandomCrop(6), T.RandomApply([T.RandomRotation(90)], 0.9), T.Normalize(0, 1)])
    x = image(2, 8, 8)
    assert t(x, generator=seeded(5)).tolist() == t(x, generator=seeded(5)).tolist()
    assert t(x, generator=seeded(5)).tolist() != t(x, generator=seeded(6)).tolist()


def test_random_apply_applies_all_or_nothing() -> None:
    t = T.RandomApply([lambda x: x + 1, lambda x: x + 2], p=0.25)
    out = t(chainrule.zeros(2000, 1, 1, 1), generator=seeded()).ravel()
    assert set(out.tolist()) == {0.0, 3.0}
    assert abs(out.mean().item() / 3 - 0.25) < 0.03


@pytest.mark.parametrize(
    "transform",
    [
        T.ToTensor(),
        T.Normalize([0.1, 0.2, 0.3], 2.0),
        T.Resize(6),
        T.CenterCrop((4, 12)),
        T.Pad(2, 1, "constant"),
        T.Grayscale(3),
    ],
    ids=lambda t: type(t).__name__,
)
def test_a_batch_is_transformed_like_its_images(transform: Any) -> None:
    x = image(4, 3, 9, 10)
    one_by_one = np.stack([transform(i).numpy() for i in x])
    assert_close(transform(x), one_by_one, rtol=1e-7)


def test_transforms_are_saved_with_a_model(tmp_path: Path) -> None:
    augment = T.Compose([T.RandomCrop(8, padding=1), *RANDOM, T.Normalize(0.5, 0.25)])
    chainrule.save(augment, tmp_path / "t.safetensors")
    again = chainrule.load(tmp_path / "t.safetensors")
    assert repr(again) == repr(augment)
    x = image(2, 3, 8, 8)
    assert again(x, generator=seeded()).tolist() == augment(x, generator=seeded()).tolist()
    model = nn.Sequential(
        T.Normalize(0.5, 0.25), T.RandomRotation(9), nn.Flatten(), nn.Linear(12, 2)
    )
    chainrule.save(model, tmp_path / "m.safetensors")
    loaded = chainrule.load(tmp_path / "m.safetensors").eval()
    y = chainrule.rand(5, 3, 2, 2)
    assert loaded(y).tolist() == model.eval()(y).tolist()
