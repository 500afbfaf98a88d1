"""The stable 64-bit hash that places rows: the same for ever, on every platform and version.

Partitions are ranges of this hash and locators are its upper bits, so all state depends on it. It
uses no hash of Polars or Python and is fixed by `tests/golden/hash_vectors.json`: a change of one
vector makes old state unreadable. From hash to partition and site: see `partition_map`.

All arithmetic is on unsigned 64-bit words and wraps around.

    mix(x)         x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB;
                   x ^= x >> 31                                  (the finaliser of splitmix64)
    hash(word)     mix(word + GOLDEN)
    hash(bytes)    mix(BYTES + length * GOLDEN + the sum of mix(word k + k * GOLDEN)); word 1 is the
                   first 8 bytes, read little-endian, and so on, the last filled up with zero bytes
    hash(NULL)     NULL
    hash(c1 … cn)  h = hash(c1); for each further column: h = mix(h * GOLDEN + hash(c)).
                   One column hashes as itself; no column at all gives NOTHING.

What a value becomes:

    integers       the word of the two's complement, so that width and sign of the type do not
                   matter. Outside -2**63 … 2**64-1: the tuple (lower word, upper word)
    Boolean        0 or 1
    floats         the bits of the float64; -0.0 as 0.0, every NaN as 0x7FF8000000000000
    Decimal        r1 * 2**32 + r2, where ri is unscaled * 10**-scale modulo the i-th of PRIMES, by
                   the inverse of 10 modulo that prime: equal values agree whatever their scale
    String, Binary the bytes (UTF-8); Categorical and Enum as their strings
    Date, Time     days since 1970, nanoseconds since midnight
    Datetime       microseconds since 1970 UTC whatever the unit and the zone; with nanoseconds left
                   over: the tuple (microseconds, nanoseconds left over). Duration likewise

Values are promised to agree only within one line of this table: cast keys of two sides that differ
(an integer and a float, a Date and a Datetime) to one type before hashing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from anabranch.errors import PlanningError

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

# GOLDEN is 2**64 divided by the golden ratio, as in splitmix64; the next three are the first digits
# of pi, so that nobody has to wonder how they were chosen.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BYTES = np.uint64(0x243F6A8885A308D3)
NULL = np.uint64(0x13198A2E03707344)
NOTHING = np.uint64(0xA4093822299F31D0)
NAN_BITS = np.uint64(0x7FF8000000000000)
PRIMES = (2**32 - 5, 2**32 - 17)

# Rows are hashed in blocks, for the many passes over a block to stay in a core's own cache; with
# smaller blocks calling Polars and NumPy costs more than it saves.
BLOCK_ROWS = 32_768

# Bytes are hashed word by word over all rows, until so few are left that a pass costs more than it
# does; their words are then hashed together, so that one huge value does not hold up the rest.
FEW_ROWS = 512

_BYTE_TYPES = frozenset({pl.String, pl.Binary, pl.Categorical, pl.Enum})
_OTHER_TYPES = _BYTE_TYPES | {pl.Boolean, pl.Null}
# Entry n keeps the lowest n bytes of a word.
_BYTE_MASKS: Words = np.array([2 ** (8 * n) - 1 for n in range(9)], dtype=np.uint64)


def hashable(dtype: pl.DataType) -> bool:
    """Whether columns of this type can be routing or grouping keys."""
    return dtype.is_numeric() or dtype.is_temporal() or dtype.base_type() in _OTHER_TYPES


def hash_columns(columns: Sequence[pl.Series], rows: int) -> Words:
    """One hash per row of the tuple of these columns, each `rows` long, in a new array.

    Without columns every row gets the same hash, so that a global aggregate has one partition.
    Raises PlanningError for a column whose type cannot be a key.
    """
    for column in columns:
        if not hashable(column.dtype):
            raise PlanningError(
                f"Column {column.name!r}: expected a type that can be a key, got {column.dtype}. "
                "Group by a field or an element of it."
            )
        if len(column) != rows:
            raise ValueError(f"Column {column.name!r}: expected {rows} rows, got {len(column)}")
    hashes = np.full(rows, NOTHING, dtype=np.uint64)
    for start in range(0, rows if columns else 0, BLOCK_ROWS):
        block = _hash_block(columns[0].slice(start, BLOCK_ROWS))
        for column in columns[1:]:
            _combine(block, _hash_block(column.slice(start, BLOCK_ROWS)))
        hashes[start : start + BLOCK_ROWS] = block
    return hashes


def hash_column(column: pl.Series) -> Words:
    """One hash per value of the column, in a new array; every NULL gets the same."""
    return hash_columns([column], len(column))


def _mix_in_place(words: Words) -> None:
    shifted = np.empty_like(words)
    words ^= np.right_shift(words, 30, out=shifted)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= np.right_shift(words, 27, out=shifted)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= np.right_shift(words, 31, out=shifted)


def _combine(hashes: Words, further: Words) -> None:
    hashes *= GOLDEN
    hashes += further
    _mix_in_place(hashes)


def _hash_block(column: pl.Series) -> Words:
    hashes = _hash_values(column)
    if column.null_count():
        hashes[column.is_null().to_numpy()] = NULL
    return hashes


def _hash_values(column: pl.Series) -> Words:
    """The hash of each value; what stands at NULLs is arbitrary."""
    dtype = column.dtype
    if dtype.base_type() in _BYTE_TYPES:
        plain = column if dtype == pl.Binary else column.cast(pl.String)
        return _hash_bytes(plain.to_arrow().cast(pa.large_binary()))
    if dtype.is_float():
        # Adding 0.0 turns -0.0 into 0.0 and makes the copy that may be overwritten.
        values: npt.NDArray[np.float64] = column.cast(pl.Float64).to_numpy() + 0.0
        bits = values.view(np.uint64)
        bits[np.isnan(values)] = NAN_BITS
        return _hash_words(bits)
    if isinstance(dtype, pl.Decimal):
        lower, upper = _halves(column)
        first, second = (_residues(lower, upper, dtype.scale, prime) for prime in PRIMES)
        return _hash_words(first << np.uint64(32) | second)
    if isinstance(dtype, pl.Int128 | pl.UInt128):
        lower, upper = _halves(column)
        fits = upper == 0
        if isinstance(dtype, pl.Int128):
            fits |= (upper == -1) & (lower.view(np.int64) < 0)
        return _hash_pairs(lower, upper.view(np.uint64), ~fits)
    words = _integer_words(column)
    if isinstance(dtype, pl.Datetime | pl.Duration):
        if dtype.time_unit == "ms":
            words *= np.uint64(1000)
        elif dtype.time_unit == "ns":
            micros = (words.view(np.int64) // 1000).view(np.uint64)
            words -= micros * np.uint64(1000)
            return _hash_pairs(micros, words, words != 0)
    return _hash_words(words)


def _hash_words(words: Words) -> Words:
    """The hashes of the words, in the array of the words."""
    words += GOLDEN
    _mix_in_place(words)
    return words


def _hash_pairs(first: Words, second: Words, paired: npt.NDArray[np.bool_]) -> Words:
    """The hash of the tuple (first, second) where `paired`, of the first word alone elsewhere."""
    hashes = _hash_words(first)
    tuples = hashes[paired]
    _combine(tuples, _hash_words(second[paired]))
    hashes[paired] = tuples
    return hashes


def _integer_words(column: pl.Series) -> Words:
    # Polars' own way to NumPy turns integers with NULLs into floats, which loses digits.
    array = (column.cast(pl.UInt8) if column.dtype in (pl.Boolean, pl.Null) else column).to_arrow()
    size = array.type.bit_width // 8
    code = f"u{size}" if pa.types.is_unsigned_integer(array.type) else f"i{size}"
    values = np.frombuffer(array.buffers()[1], code, len(array), array.offset * size)
    return values.astype(np.uint64)


def _halves(column: pl.Series) -> tuple[Words, Integers]:
    """The lower and the upper word of 128-bit integers, a type which NumPy does not have."""
    wide = column.to_physical().fill_null(0)
    lower = wide.cast(pl.UInt64, wrap_numerical=True).to_numpy(writable=True)
    return lower, (wide // 2**64).cast(pl.Int64, wrap_numerical=True).to_numpy(writable=True)


def _residues(lower: Words, upper: Integers, scale: int, prime: int) -> Words:
    """Unscaled * 10**-scale modulo the prime, below 2**32 so that no product overflows."""
    p = np.uint64(prime)
    unscaled = (upper - upper // prime * prime).astype(np.uint64) * np.uint64(2**64 % prime)
    unscaled += lower - lower // p * p
    scaled = (unscaled - unscaled // p * p) * np.uint64(pow(10, -scale, prime))
    # NumPy divides many numbers at once, but takes remainders one by one: hence no %.
    return scaled - scaled // p * p


def _hash_bytes(array: pa.LargeBinaryArray) -> Words:
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    begin, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    # A word that begins within the last value must not end outside the buffer.
    padded = np.zeros(size + 7, dtype=np.uint8)
    if size:
        padded[:size] = np.frombuffer(array.buffers()[2], np.uint8, size, begin)
    # Strides of one byte: entry i is the word that begins at byte i.
    words: Words = np.ndarray((size,), "<u8", padded.data, strides=(1,))
    left = np.diff(offsets)
    hashes: Words = left.astype(np.uint64) * GOLDEN + BYTES
    rows = np.flatnonzero(left)
    position, left = (offsets[:-1] - begin)[rows], left[rows]
    ordinal = np.ones(1, dtype=np.int64)
    while rows.size > FEW_ROWS:
        hashes[rows] += _mixed_words(words, position, left, ordinal)
        position += 8
        left -= 8
        ordinal += 1
        unfinished = left > 0
        if not unfinished.all():
            rows, position, left = rows[unfinished], position[unfinished], left[unfinished]
    if rows.size:
        counts = (left + 7) // 8
        starts = np.cumsum(counts) - counts
        index = np.arange(counts.sum()) - np.repeat(starts, counts)
        position = np.repeat(position, counts) + 8 * index
        left = np.repeat(left, counts) - 8 * index
        mixed = _mixed_words(words, position, left, ordinal + index)
        hashes[rows] += np.add.reduceat(mixed, starts)
    _mix_in_place(hashes)
    return hashes


def _mixed_words(words: Words, position: Integers, left: Integers, ordinal: Integers) -> Words:
    """The mixed word at each position; of the 8 bytes only those count that are left there."""
    mixed: Words = words[position] & _BYTE_MASKS.take(left, mode="clip")
    mixed += ordinal.view(np.uint64) * GOLDEN
    _mix_in_place(mixed)
    return mixed
