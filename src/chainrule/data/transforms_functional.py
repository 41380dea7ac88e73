"""Transforms of images as functions: torchvision's ``transforms.functional``."""

from chainrule.data.color import (
    adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, adjust_sharpness,
    autocontrast, equalize, gaussian_noise, invert, posterize, rgb_to_grayscale, solarize,
)  # fmt: skip
from chainrule.data.geometry import (
    affine, center_crop, crop, erase, hflip, pad, resize, resized_crop, rotate, vflip,
)  # fmt: skip
from chainrule.data.images import normalize, to_float, to_pil_image, to_tensor, unnormalize

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "adjust_sharpness",
    "affine", "autocontrast", "center_crop", "crop", "equalize", "erase", "gaussian_noise", "hflip",
    "invert", "normalize", "pad", "posterize", "resize", "resized_crop", "rgb_to_grayscale",
    "rotate", "solarize", "to_float", "to_pil_image", "to_tensor", "unnormalize", "vflip",
]  # fmt: skip
