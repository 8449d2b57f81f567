"""The dot product of the online kernels: fast, and the same bits on every machine."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LANES = 8
_INDEX = ir.IntType(64)
_FLOAT = ir.DoubleType()
_VECTOR = ir.VectorType(_FLOAT, LANES)


def _dot(typing_context: Any, a: Any, b: Any) -> Any:
    """Return a·b of two contiguous float64 vectors, for use inside compiled kernels.

    Entry i goes to lane i mod 8; whole blocks of eight are added lane by lane, the lanes are
    added as a fixed tree, the rest of the vector one by one. A plain loop is four times slower
    (each addition waits for the one before), and a reordered one (``fastmath``, BLAS) rounds
    differently from one processor to the next; here the order is part of the code.
    """
    if any(t.ndim != 1 or t.layout != "C" or t.dtype != types.float64 for t in (a, b)):
        return None
    return types.float64(a, b), _generate


dot: Any = intrinsic(_dot)


def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit the loop over blocks of eight, the loop over the rest, and the sum of the lanes."""
    pairs = zip(signature.args, arguments, strict=True)
    first, second = (make_array(kind)(context, builder, value) for kind, value in pairs)
    length = cgutils.unpack_tuple(builder, first.shape, 1)[0]
    blocks = builder.udiv(length, _INDEX(LANES))
    lanes = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
    rest = cgutils.alloca_once_value(builder, _FLOAT(0.0))
    with cgutils.for_range(builder, blocks) as block:
        start = builder.mul(block.index, _INDEX(LANES))
        _add(builder, lanes, _product(builder, first.data, second.data, start, _VECTOR))
    done = builder.mul(blocks, _INDEX(LANES))
    with cgutils.for_range_slice(builder, done, length, _INDEX(1)) as (index, _):
        _add(builder, rest, _product(builder, first.data, second.data, index, _FLOAT))
    return builder.fadd(_sum_of_lanes(builder, builder.load(lanes)), builder.load(rest))


def _product(builder: Any, left: Any, right: Any, index: Any, kind: Any) -> Any:
    factors = []
    for data in (left, right):
        factor = builder.load(builder.bitcast(builder.gep(data, [index]), kind.as_pointer()))
        factor.align = 8  # the rows of a matrix start anywhere, not at multiples of a vector
        factors.append(factor)
    return builder.fmul(*factors)


def _add(builder: Any, total: Any, term: Any) -> None:
    builder.store(builder.fadd(builder.load(total), term), total)


def _sum_of_lanes(builder: Any, lanes: Any) -> Any:
    terms = [builder.extract_element(lanes, ir.IntType(32)(i)) for i in range(LANES)]
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [builder.fadd(terms[i], terms[i + half]) for i in range(half)]
    return terms[0]
