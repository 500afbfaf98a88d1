"""The hash that places rows: fixed vectors, which values agree, and how evenly it spreads.

The functions `*_hash` are the specification in the header of `hashing.py`, one value at a time in
plain Python. They made the golden vectors, and random values are compared with them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import PlanningError
from anabranch.routing import hashing
from anabranch.routing.hashing import hash_column, hash_columns, hashable

VECTORS = json.loads((Path(__file__).parents[1] / "golden" / "hash_vectors.json").read_text())
WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
BYTES = 0x243F6A8885A308D3
NULL = 0x13198A2E03707344
NOTHING = 0xA4093822299F31D0


def reference_mix(x: int) -> int:
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & WORD
    return x ^ x >> 31


def tuple_hash(hashes: list[int]) -> int:
    if not hashes:
        return NOTHING
    result = hashes[0]
    for one in hashes[1:]:
        result = reference_mix((result * GOLDEN + one) & WORD)
    return result


def word_hash(word: int) -> int:
    return reference_mix((word + GOLDEN) & WORD)


def integer_hash(value: int) -> int:
    if -(2**63) <= value < 2**64:
        return word_hash(value & WORD)
    return tuple_hash([word_hash(value & WORD), word_hash(value >> 64 & WORD)])


def float_hash(value: float) -> int:
    if value != value:
        return word_hash(0x7FF8000000000000)
    return word_hash(struct.unpack("<Q", struct.pack("<d", value or 0.0))[0])


def bytes_hash(value: bytes) -> int:
    total = BYTES + len(value) * GOLDEN
    for k, start in enumerate(range(0, len(value), 8), start=1):
        word = int.from_bytes(value[start : start + 8], "little")
        total += reference_mix((word + k * GOLDEN) & WORD)
    return reference_mix(total & WORD)


def decimal_hash(value: Decimal, scale: int) -> int:
    unscaled = int(value.scaleb(scale, Context(prec=60)))
    first, second = (unscaled * pow(10, -scale, p) % p for p in (2**32 - 5, 2**32 - 17))
    return word_hash(first << 32 | second)


def instant_hash(value: int, unit: str) -> int:
    micros, rest = divmod(value * {"ms": 1_000_000, "us": 1_000, "ns": 1}[unit], 1000)
    return tuple_hash([integer_hash(v) for v in ((micros, rest) if rest else (micros,))])


# The type named in the vectors: its Polars type, how its values are written, its reference.
KINDS: dict[str, tuple[Any, Callable[[str], Any], Callable[[Any], int]]] = {
    **{
        name: (getattr(pl, name), int, integer_hash)
        for bits in (8, 16, 32, 64, 128)
        for name in (f"Int{bits}", f"UInt{bits}")
    },
    "Boolean": (pl.Boolean, lambda text: text == "true", integer_hash),
    "Float16": (pl.Float16, float, float_hash),
    "Float32": (pl.Float32, float, float_hash),
    "Float64": (pl.Float64, float, float_hash),
    "Decimal(38,0)": (pl.Decimal(38, 0), Decimal, lambda v: decimal_hash(v, 0)),
    "Decimal(12,2)": (pl.Decimal(12, 2), Decimal, lambda v: decimal_hash(v, 2)),
    "Decimal(38,10)": (pl.Decimal(38, 10), Decimal, lambda v: decimal_hash(v, 10)),
    "String": (pl.String, str, lambda v: bytes_hash(v.encode())),
    "Categorical": (pl.Categorical(), str, lambda v: bytes_hash(v.encode())),
    "Enum": (pl.Enum(["high", "low", "größer", ""]), str, lambda v: bytes_hash(v.encode())),
    "Binary": (pl.Binary, bytes.fromhex, bytes_hash),
    "Date": (pl.Date, int, integer_hash),
    "Time": (pl.Time, int, integer_hash),
    "Datetime(ms)": (pl.Datetime("ms"), int, lambda v: instant_hash(v, "ms")),
    "Datetime(us)": (pl.Datetime("us"), int, lambda v: instant_hash(v, "us")),
    "Datetime(us,Asia/Tokyo)": (
        pl.Datetime("us", "Asia/Tokyo"),
        int,
        lambda v: instant_hash(v, "us"),
    ),
    "Datetime(ns)": (pl.Datetime("ns"), int, lambda v: instant_hash(v, "ns")),
    "Duration(ms)": (pl.Duration("ms"), int, lambda v: instant_hash(v, "ms")),
    "Duration(us)": (pl.Duration("us"), int, lambda v: instant_hash(v, "us")),
    "Duration(ns)": (pl.Duration("ns"), int, lambda v: instant_hash(v, "ns")),
    "Null": (pl.Null, str, lambda v: NULL),
}


def column_of(kind: str, texts: list[str | None]) -> pl.Series:
    dtype, parse, _ = KINDS[kind]
    values = [None if text is None else parse(text) for text in texts]
    if pl.Series(dtype=dtype).dtype.is_temporal():
        return pl.Series(kind, values, dtype=pl.Int64).cast(dtype)
    return pl.Series(kind, values, dtype=dtype)


def of_hex(texts: list[str]) -> list[int]:
    return [int(text, 16) for text in texts]


def by_kind(vector: dict[str, Any]) -> str:
    return str(vector["type"])


def test_every_type_has_vectors() -> None:
    assert {vector["type"] for vector in VECTORS["columns"]} == set(KINDS)


@pytest.mark.parametrize("vector", VECTORS["columns"], ids=by_kind)
def test_column_vectors(vector: dict[str, Any]) -> None:
    column = column_of(vector["type"], vector["values"])
    assert hash_column(column).tolist() == of_hex(vector["hashes"])


@pytest.mark.parametrize("vector", VECTORS["columns"], ids=by_kind)
def test_vectors_follow_the_written_specification(vector: dict[str, Any]) -> None:
    _, parse, reference = KINDS[vector["type"]]
    expected = [NULL if text is None else reference(parse(text)) for text in vector["values"]]
    assert of_hex(vector["hashes"]) == expected


@pytest.mark.parametrize("vector", VECTORS["tuples"], ids=lambda v: "+".join(v["types"]) or "none")
def test_tuple_vectors(vector: dict[str, Any]) -> None:
    rows, kinds = vector["rows"], vector["types"]
    columns = [column_of(kind, [row[i] for row in rows]) for i, kind in enumerate(kinds)]
    assert hash_columns(columns, len(rows)).tolist() == of_hex(vector["hashes"])


def test_a_word_is_mixed_as_splitmix64_mixes_its_counter() -> None:
    # The first number that splitmix64 with seed 0 is published to give.
    assert one(0, pl.Int64) == 0xE220A8397B1DCDAF


def one(value: Any, dtype: Any) -> int:
    return int(hash_column(pl.Series("one", [value], dtype=dtype))[0])


def instant(value: int, dtype: Any) -> int:
    return int(hash_column(pl.Series("one", [value], dtype=pl.Int64).cast(dtype))[0])


INTEGERS = [
    getattr(pl, f"{sign}{bits}") for sign in ("Int", "UInt") for bits in (8, 16, 32, 64, 128)
]


def test_integers_hash_by_value() -> None:
    assert len({one(5, dtype) for dtype in INTEGERS}) == 1
    assert len({one(-5, dtype) for dtype in INTEGERS[:5]}) == 1
    assert one(2**64 - 5, pl.UInt64) == one(2**64 - 5, pl.Int128) == one(2**64 - 5, pl.UInt128)
    assert one(2**63, pl.UInt64) == one(-(2**63), pl.Int64) == one(2**63, pl.Int128)
    assert one(-(2**64) + 5, pl.Int128) != one(5, pl.Int64) != one(2**64 + 5, pl.Int128)
    assert one(True, pl.Boolean) == one(1, pl.Int64)
    assert one(False, pl.Boolean) == one(0, pl.Int64)


def test_floats_hash_by_value() -> None:
    nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_1234))[0]
    assert one(0.0, pl.Float64) == one(-0.0, pl.Float64) == one(-0.0, pl.Float32)
    assert one(nan, pl.Float64) == one(float("nan"), pl.Float64) == one(float("nan"), pl.Float32)
    assert one(1.5, pl.Float16) == one(1.5, pl.Float32) == one(1.5, pl.Float64)
    assert one(0.1, pl.Float32) != one(0.1, pl.Float64)
    assert one(1.5, pl.Float64) != one(-1.5, pl.Float64)


def test_decimals_hash_by_value_whatever_the_scale() -> None:
    for text in ("1", "-1", "0", "120", "-98765432109876543210", "1.5"):
        scales = range(1 if "." in text else 0, 18)
        assert len({one(Decimal(text), pl.Decimal(38, scale)) for scale in scales}) == 1, text
    distinct = [Decimal(v).scaleb(-3) for v in (1, 10, 100, -1, 2**64 + 1, 2**96, -(2**96), 0)]
    assert len({one(value, pl.Decimal(38, 3)) for value in distinct}) == len(distinct)


def test_strings_and_bytes_hash_by_their_bytes() -> None:
    for text in ("", "a", "größer", "exactly8", "nine char", "a" * 1000):
        hashes = {one(text, pl.String), one(text.encode(), pl.Binary), one(text, pl.Categorical)}
        assert hashes == {one(text, pl.Enum(["zzz", text]))}
    padded = [b"a" + b"\0" * n for n in range(20)] + [b"\0" * n for n in range(20)]
    assert len(set(hash_column(pl.Series(padded)).tolist())) == len(padded)


@pytest.mark.parametrize("base", [pl.Datetime, pl.Duration])
@pytest.mark.parametrize("millis", [0, 1, -1, 1_700_000_000_123, -1_700_000_000_123])
def test_times_hash_the_same_in_every_unit(base: Any, millis: int) -> None:
    hashed = instant(millis, base("ms"))
    assert hashed == instant(millis * 1000, base("us")) == instant(millis * 10**6, base("ns"))
    neighbours = [instant(millis * 10**6 + nanos, base("ns")) for nanos in range(-3, 1004)]
    assert len(set(neighbours)) == len(neighbours)


def test_the_time_zone_does_not_matter() -> None:
    instants = pl.Series("t", [0, 1_700_000_000_000_000]).cast(pl.Datetime("us"))
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        zoned = instants.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        assert hash_column(zoned).tolist() == hash_column(instants).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_nulls_and_empty_columns_of_every_type(kind: str) -> None:
    assert hashable(pl.Series(dtype=KINDS[kind][0]).dtype)
    assert hash_column(column_of(kind, [None] * 3)).tolist() == [NULL] * 3
    empty = hash_column(column_of(kind, []))
    assert empty.dtype == np.uint64
    assert empty.shape == (0,)


def test_tuples_tell_order_and_arity_apart() -> None:
    a, b = pl.Series("a", [1, None, 7]), pl.Series("b", [2, 3, 7])
    assert hash_columns([a], 3).tolist() == hash_column(a).tolist()
    assert (hash_columns([a, b], 3) != hash_columns([b, a], 3)).tolist() == [True, True, False]
    assert (hash_columns([a, b], 3) != hash_columns([a, b, b], 3)).all()
    assert hash_columns([], 3).tolist() == [NOTHING] * 3
    assert hash_columns([], 0).shape == hash_columns([a.clear(), b.clear()], 0).shape == (0,)


@pytest.mark.parametrize("vector", VECTORS["columns"], ids=by_kind)
@pytest.mark.parametrize(("block", "few"), [(4, 0), (32_768, 3), (32_768, 512)])
def test_slices_chunks_and_blocks_do_not_matter(
    vector: dict[str, Any], block: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "BLOCK_ROWS", block)
    monkeypatch.setattr(hashing, "FEW_ROWS", few)
    column = column_of(vector["type"], vector["values"])
    expected = of_hex(vector["hashes"])
    for start in range(len(column)):
        assert hash_column(column.slice(start, 3)).tolist() == expected[start : start + 3]
        chunks = [column.slice(start), column.clear(), column.slice(0, start)]
        chunked = pl.concat(chunks, rechunk=False)
        assert hash_column(chunked).tolist() == expected[start:] + expected[:start]
        again = pl.concat([chunked.slice(1), column], rechunk=False)
        assert again.n_chunks() > 1 or column.dtype == pl.Null
        both = hash_columns([again, again.reverse()], len(again))
        hashes = (expected[start:] + expected[:start])[1:] + expected
        pairs = zip(hashes, reversed(hashes), strict=True)
        assert both.tolist() == [tuple_hash(list(pair)) for pair in pairs]


def test_a_slice_of_arrow_bytes_is_read_where_it_lies() -> None:
    # Polars 2 copies strings when it hands them over, but Arrow lets it pass slices.
    values = ["before", None, "user-123", "", "the last one ends the buffer"]
    array = pa.array(values, pa.large_binary())
    expected = [bytes_hash((value or "").encode()) for value in values]
    for start in range(len(values)):
        for stop in range(start + 1, len(values) + 1):
            part = hashing._hash_bytes(array.slice(start, stop - start))
            assert part.tolist() == expected[start:stop]


def test_the_result_is_new_and_the_input_unchanged() -> None:
    for column in (pl.Series("u", [1, 2], dtype=pl.UInt64), pl.Series("f", [-0.0, 2.0])):
        before = column.to_list()
        first = hash_column(column)
        first[:] = 0
        assert str(column.to_list()) == str(before)
        assert (hash_column(column) != 0).all()


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(st.none() | st.binary(max_size=40) | st.text(max_size=15), max_size=40),
    long=st.binary(max_size=700),
    few=st.sampled_from([0, 2, 512]),
)
def test_bytes_follow_the_written_specification(
    values: list[bytes | str | None], long: bytes, few: int
) -> None:
    encoded = [v.encode() if isinstance(v, str) else v for v in [*values, long, long[:8]]]
    expected = [NULL if value is None else bytes_hash(value) for value in encoded]
    column = pl.Series("b", encoded, dtype=pl.Binary)
    with patch.object(hashing, "FEW_ROWS", few):
        assert hash_column(column).tolist() == expected
        assert hash_column(column.slice(1, 5)).tolist() == expected[1:6]
        texts = pl.Series("s", [v for v in values if isinstance(v, str)], dtype=pl.String)
        assert hash_column(texts).tolist() == [bytes_hash(text.encode()) for text in texts]


@settings(max_examples=200, deadline=None)
@given(
    unscaled=st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-999, 999)),
    scale=st.integers(0, 38),
)
def test_decimals_follow_the_written_specification(unscaled: list[int], scale: int) -> None:
    values = [Decimal(value).scaleb(-scale, Context(prec=60)) for value in unscaled]
    column = pl.Series("d", values, dtype=pl.Decimal(38, scale))
    assert hash_column(column).tolist() == [decimal_hash(value, scale) for value in values]


@settings(max_examples=200, deadline=None)
@given(
    integers=st.lists(st.integers(-(2**127), 2**127 - 1) | st.integers(-(2**65), 2**65)),
    nanos=st.lists(st.integers(-(2**63) + 1, 2**63 - 1)),
    floats=st.lists(st.floats()),
)
def test_numbers_follow_the_written_specification(
    integers: list[int], nanos: list[int], floats: list[float]
) -> None:
    wide = hash_column(pl.Series("i", integers, dtype=pl.Int128))
    assert wide.tolist() == [integer_hash(value) for value in integers]
    times = hash_column(pl.Series("t", nanos, dtype=pl.Int64).cast(pl.Datetime("ns")))
    assert times.tolist() == [instant_hash(value, "ns") for value in nanos]
    reals = hash_column(pl.Series("f", floats, dtype=pl.Float64))
    assert reals.tolist() == [float_hash(value) for value in floats]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("tags", [["a"]], dtype=pl.List(pl.String)),
        pl.Series("pair", [[1, 2]], dtype=pl.Array(pl.Int64, 2)),
        pl.Series("flow", [{"src": 1}], dtype=pl.Struct({"src": pl.Int64})),
        pl.Series("thing", [object()], dtype=pl.Object),
    ],
    ids=lambda column: str(column.name),
)
def test_a_type_that_cannot_be_a_key_is_named(column: pl.Series) -> None:
    assert not hashable(column.dtype)
    with pytest.raises(PlanningError) as raised:
        hash_columns([pl.Series("ok", [1]), column], 1)
    message = str(raised.value)
    assert repr(column.name) in message
    assert str(column.dtype) in message
    assert "Group by a field or an element of it." in message


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'b': expected 2 rows, got 1"):
        hash_columns([pl.Series("a", [1, 2]), pl.Series("b", [1])], 2)


ROWS = 1_000_000
COUNT = pl.Series("n", np.arange(ROWS))
SPREAD: dict[str, Callable[[], list[pl.Series]]] = {
    "sequential": lambda: [COUNT],
    "multiples of 2**32": lambda: [COUNT * 2**32],
    "addresses of networks": lambda: [(COUNT % 1000 * 2**16 + COUNT // 1000).cast(pl.UInt32)],
    "floats": lambda: [COUNT.cast(pl.Float64) / 8],
    "cents": lambda: [COUNT.cast(pl.Decimal(38, 2))],
    "timestamps": lambda: [(COUNT * 10**6).cast(pl.Datetime("us"))],
    "user names": lambda: [pl.Series("user", [f"user-{n}" for n in range(ROWS)])],
    "16 digits": lambda: [
        pl.Series("card", [f"{n % 1000:08d}{n // 1000:08d}" for n in range(ROWS)])
    ],
    "grid": lambda: [COUNT % 1000, COUNT // 1000],
    "twice the same": lambda: [COUNT, COUNT],
}


@pytest.mark.parametrize("data", SPREAD)
def test_keys_spread_evenly(data: str) -> None:
    hashes = hash_columns(SPREAD[data](), ROWS)
    # Every byte must be even, since ranges of any number of partitions are cut from the upper bits.
    for shift in range(0, 64, 8):
        counts = np.bincount((hashes >> np.uint64(shift) & np.uint64(255)).astype(np.int64))
        expected = ROWS / 256
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        # 255 degrees of freedom: 255 on average, beyond 370 once in about a million cases.
        assert chi_square < 370, f"bits {shift}…{shift + 7}"
        assert np.abs(counts / expected - 1).max() < 0.08
    # A locator keeps the upper 48 bits: of a million, two meet once in 560 cases.
    assert len(np.unique(hashes >> np.uint64(16))) == ROWS


def flipped(column: pl.Series, bit: int) -> pl.Series:
    if column.dtype == pl.Binary:
        raw = np.frombuffer(b"".join(column.to_list()), np.uint8).reshape(len(column), -1).copy()
        raw[:, bit // 8] ^= np.uint8(1 << bit % 8)
        return pl.Series("b", [row.tobytes() for row in raw])
    return pl.Series("i", column.to_numpy() ^ np.uint64(1 << bit))


@pytest.mark.parametrize("data", ["words", "bytes", "first of a tuple", "second of a tuple"])
def test_a_changed_bit_changes_half_of_the_hash(data: str) -> None:
    samples = 4096
    random = np.random.default_rng(7)
    other = pl.Series("other", np.arange(samples))
    if data == "bytes":
        column = pl.Series("b", [random.bytes(12) for _ in range(samples)])
    else:
        column = pl.Series("i", random.integers(0, 2**64, samples, dtype=np.uint64))

    def hashes(changed: pl.Series) -> np.ndarray:
        before = [other] if data.startswith("second") else []
        after = [other] if data.startswith("first") else []
        return hash_columns([*before, changed, *after], samples)

    original = hashes(column)
    for bit in range(96 if data == "bytes" else 64):
        changes = original ^ hashes(flipped(column, bit))
        for output in range(64):
            share = float((changes >> np.uint64(output) & np.uint64(1)).mean())
            # The standard deviation is 0.008.
            assert 0.45 < share < 0.55, (
                f"bit {bit} changes bit {output} in {share:.2f} of all cases"
            )
