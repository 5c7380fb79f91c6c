"""Images (uint8 [H, W, 3], RGB) as PNG; untrusted PNG is checked before it is decompressed."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final, TypeGuard

import numpy as np
from numpy.typing import NDArray

from agentgyms.core.errors import BadRequest

MAX_PIXELS: Final = 2**24
"""Maximum pixels of an image."""

Image = NDArray[np.uint8]

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_HEADER: Final = struct.Struct(">IIBBBBB")
_CHUNK: Final = struct.Struct(">I4s")
_RGB_8_BIT: Final = (8, 2)
_FRAME: Final = 12  # bytes of a chunk around its content: length, kind, checksum


def is_image(value: Any) -> TypeGuard[Image]:
    """Return whether `value` is an array of uint8 [H, W, 3] of at most `MAX_PIXELS` pixels."""
    return (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and value.ndim == 3
        and value.shape[2] == 3
        and 0 < value.shape[0] * value.shape[1] <= MAX_PIXELS
    )


def digest(image: Image) -> str:
    """Return the digest of an image's shape and pixels: 32 hex characters."""
    content = repr(image.shape).encode() + image.tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def encode_png(image: Image) -> bytes:
    """Return an image (uint8 [H, W, 3]) as PNG; equal images give equal bytes with the same zlib.

    Unfiltered rows are faster and smaller for drawn images. Raises `TypeError` for anything else.
    """
    if not is_image(image):
        given = type(image).__name__
        if isinstance(image, np.ndarray):
            given = f"{image.dtype} {list(image.shape)}"
        raise TypeError(
            f"an image is an array of uint8 [H, W, 3] of at most {MAX_PIXELS} pixels, got {given}"
        )
    height, width, channels = image.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row starts with its filter, 0
    rows[:, 1:] = image.reshape(height, -1)
    header = _HEADER.pack(width, height, *_RGB_8_BIT, 0, 0, 0)
    # level 1, the fastest: an image is made every turn
    pixels = zlib.compress(rows.data, 1)
    chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in chunks)


def decode_png(png: bytes) -> Image:
    """Return the image in a PNG, shape [H, W, 3], losslessly.

    Raises `BadRequest` for bytes that are no PNG, for a damaged, animated or interlaced one, one
    that is not 8-bit RGB, and one of more than `MAX_PIXELS` pixels.
    """
    width, height, rows = _check(png)
    # each row is one filter byte and 3 bytes a pixel
    _check_rows(rows, height * (1 + 3 * width))
    from PIL import Image as Pillow  # here, to keep `import agentgyms` fast

    try:
        with Pillow.open(BytesIO(png), formats=("PNG",)) as picture:
            image = np.array(picture)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error) as e:
        raise BadRequest(f"the PNG is damaged: {e}") from None
    if not is_image(image) or image.shape != (height, width, 3):
        raise BadRequest(f"the PNG is damaged: its pixels have the shape {list(image.shape)}")
    return image


def _check(png: bytes) -> tuple[int, int, bytes]:
    """Check a PNG's structure; return width, height and compressed rows."""
    size: tuple[int, int] | None = None
    kind = b""
    rows = []
    for kind, content in _chunks(png):
        if size is None:
            size = _size(kind, content)
        elif kind == b"IDAT":
            rows.append(content)
        elif kind in (b"IHDR", b"acTL"):
            raise BadRequest(f"the PNG has a part {kind!r} in its middle: expected a single image")
    if size is None or kind != b"IEND":
        raise BadRequest("the PNG is damaged: it has no end")
    return *size, b"".join(rows)


def _check_rows(packed: bytes, expected: int) -> None:
    """Raise `BadRequest` for rows of a wrong length; Pillow fills missing ones with black."""
    unpacker = zlib.decompressobj()
    try:
        # one byte more at most: a small file must not unpack to gigabytes
        length = len(unpacker.decompress(packed, expected + 1))
    except zlib.error as e:
        raise BadRequest(f"the PNG is damaged: {e}") from None
    if length != expected:
        more = " or more" if length > expected else ""
        raise BadRequest(
            f"the PNG is damaged: it unpacks to {length}{more} bytes, expected {expected}"
        )


def _size(kind: bytes, content: bytes) -> tuple[int, int]:
    if kind != b"IHDR" or len(content) != _HEADER.size:
        raise BadRequest("the PNG is damaged: it does not begin with its size")
    width, height, depth, colour, _, _, interlaced = _HEADER.unpack(content)
    if not 0 < width * height <= MAX_PIXELS:
        raise BadRequest(
            f"the PNG has {width} x {height} pixels: expected at least one, at most {MAX_PIXELS}"
        )
    if (depth, colour) != _RGB_8_BIT:
        raise BadRequest(
            f"the PNG has bit depth {depth} and colour type {colour}: expected 8-bit RGB, which is "
            "bit depth 8 and colour type 2"
        )
    if interlaced:
        raise BadRequest("the PNG is interlaced: save it without that")
    return width, height


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of each chunk of a PNG; checks the checksums."""
    if not png.startswith(_SIGNATURE):
        raise BadRequest(f"an image travels as PNG, and these {len(png)} bytes are none")
    at = len(_SIGNATURE)
    while at < len(png):
        if at + _FRAME > len(png):
            raise BadRequest("the PNG is damaged: it is cut off")
        length, kind = _CHUNK.unpack_from(png, at)
        end = at + _FRAME + length
        if end > len(png):
            raise BadRequest("the PNG is damaged: it is cut off")
        checksum = int.from_bytes(png[end - 4 : end], "big")
        if zlib.crc32(memoryview(png)[at + 4 : end - 4]) != checksum:
            raise BadRequest(f"the PNG is damaged: its part {kind!r} has another checksum")
        yield kind, png[at + 8 : end - 4]
        at = end


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(content, zlib.crc32(kind))
    return b"".join((_CHUNK.pack(len(content), kind), content, checksum.to_bytes(4, "big")))
