"""CRC-32 (IEEE 802.3, reflected, as in zlib) of binlog events, compiled, callable from other
kernels.

In:  an address and a length, which the caller has checked.
Out: the checksum that MySQL and MariaDB put after an event (BINLOG_CHECKSUM_ALG_CRC32).

Two ways, one result. If the CPU has PCLMULQDQ, carry-less multiplication folds 64 bytes per step,
and 16 of shorter events (Gopal et al., Intel 2009, "Fast CRC Computation for Generic Polynomials
Using PCLMULQDQ"). Otherwise eight tables take eight bytes per step. The choice depends only on the
CPU features of numba's target. These are in the key of numba's cache, so a machine with other
features doesn't use the cached code.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from tidegate.columnar.kernel.memory import FAST, I, load8, load32
from tidegate.compiled import compiled

_POLYNOMIAL: Final = 0xEDB88320
# x^n mod P in reflected bit order; n is the distance folded over: 4 x 128 bits, 1 x 128 bits, 64 bits. Then P itself
# and floor(x^64 / P), for the Barrett reduction. The figures are the paper's, page 22.
_FOLD_512: Final = (0x154442BD4, 0x1C6E41596)
_FOLD_128: Final = (0x1751997D0, 0x0CCAA009E)
_FOLD_64: Final = (0x163CD6124, 0)
_BARRETT: Final = (0x1DB710641, 0x1F7011641)


def has_carryless_multiply() -> bool:
    """Whether numba compiles for a CPU with PCLMULQDQ."""
    features = cpu_target.target_context.codegen().magic_tuple()[2]
    return "+pclmul" in str(features).split(",")


def _tables() -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Eight tables: T[k][b] is the CRC of byte b followed by k zero bytes."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        tables[0, byte] = value
    for k in range(1, 8):
        before = tables[k - 1]
        tables[k] = (before >> np.uint32(8)) ^ tables[0][before & np.uint32(0xFF)]
    return tables


_TABLES: Final = _tables()


class _Folder:
    """Builds the folding code at LLVM's builder: registers hold 128 bits as <2 x i64>."""

    def __init__(self, builder: ir.IRBuilder, data: ir.Value) -> None:
        self.builder = builder
        self.data = data
        self.wide = ir.VectorType(ir.IntType(64), 2)
        kind = ir.FunctionType(self.wide, [self.wide, self.wide, ir.IntType(8)])
        self.multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")

    def pair(self, values: tuple[int, int]) -> ir.Constant:
        return ir.Constant(self.wide, list(values))

    def times(self, left: ir.Value, right: ir.Value, which: int) -> ir.Value:
        """Carry-less product of one 64-bit half of each. which: bit 0 for left's upper half, bit 4
        for right's.
        """
        return self.builder.call(self.multiply, [left, right, ir.Constant(ir.IntType(8), which)])

    def load(self, offset: ir.Value) -> ir.Value:
        at = self.builder.bitcast(self.builder.gep(self.data, [offset]), self.wide.as_pointer())
        loaded = self.builder.load(at)
        loaded.align = 1
        return loaded

    def fold(self, value: ir.Value, constants: ir.Constant, more: ir.Value) -> ir.Value:
        low, high = self.times(value, constants, 0x00), self.times(value, constants, 0x11)
        return self.builder.xor(self.builder.xor(low, high), more)

    def loop(self, start: ir.Value, end: ir.Value, step: int, values: list[ir.Value], constants: ir.Constant) -> Any:
        """Fold `step` bytes into values, while as many lie before end. Returns (offset, values)."""
        builder, word = self.builder, ir.IntType(64)
        size = ir.Constant(word, step)
        before = builder.block
        head, body, done = (builder.append_basic_block(f"fold{step}.{part}") for part in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        offset = builder.phi(word)
        offset.add_incoming(start, before)
        phis = [builder.phi(self.wide) for _ in values]
        for phi, value in zip(phis, values, strict=True):
            phi.add_incoming(value, before)
        after = builder.add(offset, size)
        builder.cbranch(builder.icmp_signed("<=", after, end), body, done)
        builder.position_at_end(body)
        for index, phi in enumerate(phis):
            block = self.load(builder.add(offset, ir.Constant(word, 16 * index)))
            phi.add_incoming(self.fold(phi, constants, block), body)
        offset.add_incoming(after, body)
        builder.branch(head)
        builder.position_at_end(done)
        return offset, phis

    def reduce(self, value: ir.Value) -> ir.Value:
        """128 bits to the remainder's 32."""
        builder, word = self.builder, ir.IntType(64)
        low32 = self.pair((0xFFFFFFFF, 0xFFFFFFFF))
        zero = ir.Constant(word, 0)

        def shifted(wide: ir.Value, bits: int) -> ir.Value:
            """The whole register shifted right by 64 or 32 bits."""
            low, high = (builder.extract_element(wide, ir.Constant(ir.IntType(32), i)) for i in (0, 1))
            if bits == 64:
                low, high = high, zero
            else:
                carried = builder.shl(high, ir.Constant(word, 64 - bits))
                low = builder.or_(builder.lshr(low, ir.Constant(word, bits)), carried)
                high = builder.lshr(high, ir.Constant(word, bits))
            made = builder.insert_element(self.pair((0, 0)), low, ir.Constant(ir.IntType(32), 0))
            return builder.insert_element(made, high, ir.Constant(ir.IntType(32), 1))

        value = builder.xor(self.times(value, self.pair(_FOLD_128), 0x10), shifted(value, 64))
        masked = builder.and_(value, low32)
        value = builder.xor(self.times(masked, self.pair(_FOLD_64), 0x00), shifted(value, 32))
        quotient = builder.and_(self.times(builder.and_(value, low32), self.pair(_BARRETT), 0x10), low32)
        value = builder.xor(value, self.times(quotient, self.pair(_BARRETT), 0x00))
        low = builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
        return builder.trunc(builder.lshr(low, ir.Constant(word, 32)), ir.IntType(32))


def _folding(registers: int) -> Any:
    """A compiled fold with so many registers of 16 bytes: 4 for long data, 1 for at least 16 bytes."""

    @intrinsic
    def fold(_context: Any, start: Any, length: Any, crc: Any) -> Any:
        """CRC register after length bytes (a multiple of 16) at an address."""
        del start, length, crc
        signature = types.uint32(types.int64, types.int64, types.uint32)

        def codegen(_context: Any, builder: ir.IRBuilder, _signature: Any, args: Any) -> ir.Value:
            folder = _Folder(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
            word = ir.IntType(64)
            values = [folder.load(ir.Constant(word, 16 * i)) for i in range(registers)]
            first = builder.insert_element(
                folder.pair((0, 0)), builder.zext(args[2], word), ir.Constant(ir.IntType(32), 0)
            )
            values[0] = builder.xor(values[0], first)
            offset = ir.Constant(word, 16 * registers)
            if registers == 4:
                offset, values = folder.loop(offset, args[1], 64, values, folder.pair(_FOLD_512))
            value = values[0]
            for other in values[1:]:
                value = folder.fold(value, folder.pair(_FOLD_128), other)
            _, (value,) = folder.loop(offset, args[1], 16, [value], folder.pair(_FOLD_128))
            return folder.reduce(value)

        return signature, codegen

    return fold


_fold_long: Final = _folding(4)
_fold_short: Final = _folding(1)


@compiled(types.uint32(I, I, types.uint32), **FAST)
def _by_tables(start: int, length: int, crc: int) -> Any:
    """CRC register after length bytes at an address, eight at a time."""
    tables = _TABLES
    at, end = start, start + length
    value = np.uint32(crc)
    while at + 8 <= end:
        low, high = value ^ np.uint32(load32(at)), np.uint32(load32(at + 4))
        value = (
            tables[7, low & np.uint32(0xFF)]
            ^ tables[6, low >> np.uint32(8) & np.uint32(0xFF)]
            ^ tables[5, low >> np.uint32(16) & np.uint32(0xFF)]
            ^ tables[4, low >> np.uint32(24)]
            ^ tables[3, high & np.uint32(0xFF)]
            ^ tables[2, high >> np.uint32(8) & np.uint32(0xFF)]
            ^ tables[1, high >> np.uint32(16) & np.uint32(0xFF)]
            ^ tables[0, high >> np.uint32(24)]
        )
        at += 8
    while at < end:
        value = value >> np.uint32(8) ^ tables[0, (value ^ np.uint32(load8(at))) & np.uint32(0xFF)]
        at += 1
    return np.uint32(value)


def _compiled_road(*, carryless: bool) -> Any:
    """The kernel of one way or the other. A machine with PCLMULQDQ tests both."""
    if not carryless:

        @compiled(types.uint32(I, I), **FAST)
        def crc32_by_tables(start: int, length: int) -> int:
            return ~_by_tables(start, length, np.uint32(0xFFFFFFFF))

        return crc32_by_tables

    @compiled(types.uint32(I, I), **FAST)
    def crc32_by_folding(start: int, length: int) -> int:
        value = np.uint32(0xFFFFFFFF)
        folded = length & ~15
        if folded >= 64:
            value = _fold_long(start, folded, value)
        elif folded:
            value = _fold_short(start, folded, value)
        return ~_by_tables(start + folded, length - folded, value)

    return crc32_by_folding


crc32_at: Final = _compiled_road(carryless=has_carryless_multiply())
