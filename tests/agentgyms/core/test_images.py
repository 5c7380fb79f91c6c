"""Images become PNG and come back bit for bit; what is no such PNG is refused by name."""

import struct
import subprocess
import sys
import zlib
from io import BytesIO

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from agentgyms.core import images, serialization
from agentgyms.core.errors import BadRequest


def drawn(height=6, width=9, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def saved(picture, kind="PNG", **options):
    buffer = BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind, content):
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


def png(width, height, *, depth=8, colour=2, interlaced=0, pixels=b"", parts=()):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    body = [chunk(b"IHDR", header), *parts, chunk(b"IDAT", zlib.compress(pixels))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(body) + chunk(b"IEND", b"")


@given(height=st.integers(1, 40), width=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_images_travel_bit_for_bit(height, width, seed):
    image = drawn(height, width, seed)
    encoded = images.encode_png(image)
    back = images.decode_png(encoded)
    assert (back.dtype, back.shape) == (np.uint8, (height, width, 3))
    assert np.array_equal(back, image)
    assert back.flags.writeable
    assert encoded == images.encode_png(image.copy())
    with Image.open(BytesIO(encoded)) as picture:
        picture.load()
        assert picture.mode == "RGB"
        assert np.array_equal(np.asarray(picture), image), "another reader sees other pixels"


@pytest.mark.parametrize("options", [{}, {"compress_level": 0}, {"optimize": True}], ids=str)
def test_what_other_writers_make_is_read(options):
    image = np.kron(drawn(5, 7), np.ones((9, 9, 1), np.uint8))  # large enough for row filters
    encoded = saved(Image.fromarray(image), **options)
    assert np.array_equal(images.decode_png(encoded), image)


def test_views_are_encoded_as_they_look():
    image = drawn(8, 8)
    for view in (image[::2], image[:, ::-1], image.transpose(1, 0, 2)):
        assert np.array_equal(images.decode_png(images.encode_png(view)), view)


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (drawn()[..., 0], r"uint8 \[6, 9\]"),
        (drawn().astype(np.float32), "float32"),
        (np.zeros((0, 4, 3), np.uint8), r"\[0, 4, 3\]"),
        (np.zeros((4, 4, 4), np.uint8), r"\[4, 4, 4\]"),
        (np.broadcast_to(np.uint8(0), (5000, 5000, 3)), r"\[5000, 5000, 3\]"),
        ("text", "got str"),
    ],
    ids=["grey", "float", "empty", "alpha", "huge", "text"],
)
def test_what_is_no_image_is_not_written(value, given):
    with pytest.raises(TypeError, match=given):
        images.encode_png(value)


PICTURE = Image.fromarray(drawn())


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (b"", "these 0 bytes are none"),
        (b"GIF89a", "travels as PNG"),
        (saved(PICTURE, "JPEG"), "travels as PNG"),
        (saved(PICTURE, "BMP"), "travels as PNG"),
        (saved(PICTURE.convert("L")), "bit depth 8 and colour type 0"),
        (saved(PICTURE.convert("P")), "colour type 3"),
        (saved(PICTURE.convert("RGBA")), "colour type 6"),
        (saved(PICTURE.convert("1")), "bit depth 1"),
        (png(3, 3, depth=16, pixels=bytes(57)), "bit depth 16"),
        (saved(PICTURE, save_all=True, append_images=[PICTURE.rotate(90)]), "acTL"),
        (png(100_000, 100_000), "100000 x 100000 pixels: .* at most 16777216"),
        (png(2**32 - 1, 1), "pixels"),
        (png(0, 5), "0 x 5 pixels"),
        (png(3, 3, parts=[chunk(b"IHDR", png(9, 9)[16:29])], pixels=bytes(30)), "IHDR"),
        (png(3, 3, pixels=bytes(12)), "damaged"),
        (png(3, 3, pixels=bytes(10)), "unpacks to 10 bytes, expected 30"),  # a whole row, two miss
        (png(3, 3, pixels=bytes(31)), "unpacks to 31 or more bytes, expected 30"),
        (png(3, 3, interlaced=1, pixels=bytes(30)), "interlaced"),
        (png(3, 3, pixels=b"\x09" * 30), "damaged"),
        (png(3, 3).replace(b"IHDR", b"JHDR"), "checksum"),
        (images.encode_png(drawn())[:-12], "no end"),
        (images.encode_png(drawn())[:-3], "cut off"),
        (images.encode_png(drawn())[:30], "cut off"),
        (images.encode_png(drawn())[:8], "no end"),
        (images.encode_png(drawn()) + b"more", "cut off"),
    ],
)
def test_what_is_no_png_of_ours_is_refused(encoded, message):
    with pytest.raises(BadRequest, match=message):
        images.decode_png(encoded)


@given(data=st.data())
def test_no_damaged_byte_goes_unnoticed(data):
    encoded = bytearray(images.encode_png(drawn()))
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadRequest):
        images.decode_png(bytes(encoded))


@given(st.binary(max_size=200))
@example(bytes(10))
@example(bytes(30))
def test_nonsense_is_refused(content):
    for encoded in (content, b"\x89PNG\r\n\x1a\n" + content, png(3, 3, pixels=content)):
        try:
            images.decode_png(encoded)
        except BadRequest:
            continue
        assert len(content) == 30  # the rows of a PNG of 3 x 3


def test_observations_travel():
    observation = {"text": "a\n厨\ud800", "image": drawn(), "second": drawn(2, 2), "": ""}
    encoded = serialization.loads(
        serialization.dumps(serialization.encode_observation(observation))
    )
    assert list(encoded) == list(observation)
    back = serialization.decode_observation(encoded)
    assert {k: v for k, v in back.items() if isinstance(v, str)} == {"text": "a\n厨\ud800", "": ""}
    assert np.array_equal(back["image"], observation["image"])
    assert np.array_equal(back["second"], observation["second"])
    assert serialization.encode_observation(back) == encoded


@pytest.mark.parametrize("value", [None, 3, {}, {1: "x"}, {"a": 3}, {"a": {"b": "c"}}, ["x"]])
def test_what_is_no_observation_is_not_written(value):
    with pytest.raises(TypeError):
        serialization.encode_observation(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "without parts"),
        (None, "got NoneType"),
        (["x"], "got list"),
        ({"image": None}, "'image' must be a string or an image .*got NoneType"),
        ({"image": [1, 2]}, "got list"),
        ({"image": {}}, "an object with the keys none"),
        ({"image": {"png": "", "x": 1}}, "keys 'png', 'x'"),
        ({"image": {"jpeg": ""}}, "keys 'jpeg'"),
        ({"image": {"png": 3}}, "'image' is no image, its PNG is not base64"),
        ({"image": {"png": "ab~="}}, "not base64"),
        ({"image": {"png": "厨"}}, "not base64"),
        ({"image": {"png": "QUJD"}}, "'image' is no image: .*these 3 bytes are none"),
    ],
)
def test_what_is_no_observation_is_not_read(value, message):
    with pytest.raises(BadRequest, match=message):
        serialization.decode_observation(value)


def test_pillow_is_imported_when_the_first_image_is_read():
    modules = "agentgyms.core.env, agentgyms.remote, agentgyms.recording.recorder"
    code = f"import sys, {modules}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "agentgyms.core.images" in run.stdout.split()
    assert "PIL" not in run.stdout.split()
