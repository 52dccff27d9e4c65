"""memcpy for compiled kernels: numba's slice assignment checks for overlap at every call, which costs more
than a small event's bytes.

In:  two uint8 arrays that don't overlap, offsets, a length. Nothing is checked here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def copy_bytes(_context: Any, target: Any, to: Any, source: Any, at: Any, length: Any) -> Any:
    """target[to : to + length] = source[at : at + length], by memcpy."""
    del to, at, length
    signature = types.void(target, types.int64, source, types.int64, types.int64)

    def codegen(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        into = context.make_array(sig.args[0])(context, builder, args[0])
        data = context.make_array(sig.args[2])(context, builder, args[2])
        cgutils.raw_memcpy(builder, builder.gep(into.data, [args[1]]), builder.gep(data.data, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return signature, codegen
