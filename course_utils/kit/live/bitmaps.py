"""Bitmaps: gray pictures as data URIs."""

import base64
import struct

from torch import Tensor


def bitmap(pixels: Tensor) -> str:
    """The data URI of a gray picture, (height, width) of uint8, as a bitmap: the same bytes on every machine."""
    height, width = pixels.shape
    palette = bytes(gray for level in range(256) for gray in (level, level, level, 0))
    start = 54 + len(palette)
    sizes = 40, width, -height, 1, 8, 0, pixels.numel(), 0, 0, 256, 0
    header = struct.pack("<2sIIIIiiHHIIiiII", b"BM", start + pixels.numel(), 0, start, *sizes)
    data = base64.b64encode(header + palette + pixels.numpy().tobytes()).decode("ascii")
    return f"data:image/bmp;base64,{data}"
