// Chains: elementwise calls of one size that follow each other, computed together, block by block.
//
// Each call of a kernel reads its operands from memory and writes its result there. In a chain a
// block of some hundred elements goes through all calls before the next one begins, so that what
// one call makes for the next stays in the nearest cache; what nobody reads after the chain has no
// other place than a register of one block. The functions are those of the kernels themselves, so
// that every operation rounds as it does alone. Single numbers go through a loop of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace chainrule {

// What an operation is where it is computed on two single numbers, or one.
enum class NumberCode : unsigned char { none, add, sub, mul, div, neg, square, copy };

// The element of an operand for place i of the result lies at place[(i / inner) % count]: all of
// them (count = size), a number (count = 1), a row or a column that is repeated.
struct ChainOperand {
    const void* place = nullptr;
    std::int64_t count = 0, inner = 1;
};

struct ElementCall;

// Computes n elements; operands begin at from[0], from[1], ...
using ElementFunction = void (*)(const ElementCall& call, std::int64_t n, const void* const* from,
                                 void* to);

// An elementwise call of a kernel: out[i] = f(from[0][i], from[1][i], ...). Operands and result are
// of one type, in one piece.
struct ElementCall {
    ElementFunction apply = nullptr;
    void (*function)() = nullptr;  // for apply: the kernel's loop, of a type that apply knows
    double numbers[3] = {};        // for apply
    int bytes = 0;                 // of an element: 4 or 8
    int operands = 0;
    ChainOperand from[3];
    bool takes_number[3] = {};  // apply reads one number there, if the size is not 1
    void* to = nullptr;
    std::int64_t size = 0, cost = 1;
    NumberCode code = NumberCode::none;
};

// Memory of a value that is needed inside of a chain alone.
struct Temporary {
    const char *first, *end;
};

// The calls as one function; none if they are not of one size and type, or read a temporary in
// another way than element by element.
std::function<bool()> chained(std::vector<ElementCall> calls,
                              const std::vector<Temporary>& temporaries);

}  // namespace chainrule
