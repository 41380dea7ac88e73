// The third part of a binding, after it has checked its arguments and made its results: what it
// computes, as a function that can be kept and called again.
//
// The function holds addresses and sizes by value. What depends on the values of arrays (a range
// of indices, a number of targets) is read inside it, and so is memory for its own use taken: when
// it is called again, the arrays hold other values. It returns nothing, or whether it did what it
// was asked to; if it did not, the NumPy kernel is to see to the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "binding.hpp"
#include "chain.hpp"

namespace chainrule {

using KeptFunction = std::function<bool()>;
using KeptDraw = std::function<bool(std::uint64_t key)>;

// How many tapes are being built (tape.hpp); read and changed with the GIL.
extern int tapes_in_the_making;

// Whether this thread builds a tape that keeps functions, instead of running them. A tape that
// looks at a call for the first time counts it here.
bool tape_keeps();
bool supply_keeps();  // the same, without counting
void keep(KeptFunction f);
void keep_draw(KeptDraw f);
// What the function that is kept next computes, if it is an elementwise call.
void note_elements(const ElementCall& call);

// A binding says so where a call cannot be repeated from what its functions hold: it has made a
// copy of an argument, or read values.
void cannot_be_kept();

template <class F, class... Arguments>
static inline bool done_by(F& f, Arguments... arguments) {
    if constexpr (std::is_void_v<decltype(f(arguments...))>) {
        f(arguments...);
        return true;
    } else {
        return f(arguments...);
    }
}

// Runs a function at once, or keeps it.
template <class F>
static inline bool run(const F& f) {
    if (tapes_in_the_making != 0 && tape_keeps()) {
        keep([f] { return done_by(f); });
        return true;
    }
    return done_by(f);
}

// The same of an elementwise call, which says what it is where it is kept: describe() makes the
// ElementCall.
template <class D, class F>
static inline bool run_elements(const D& describe, const F& f) {
    if (tapes_in_the_making != 0 && tape_keeps()) {
        note_elements(describe());
        keep([f] { return done_by(f); });
        return true;
    }
    return done_by(f);
}

// The same of a function of something that is expensive to copy; it is moved if it is kept.
template <class Held, class F>
static inline bool run_with(Held& held, const F& f) {
    if (tapes_in_the_making != 0 && tape_keeps()) {
        auto own = std::make_shared<Held>(std::move(held));
        keep([own, f] { return done_by(f, std::cref(*own)); });
        return true;
    }
    return done_by(f, std::cref(held));
}

// The next 64 bits of a generator of NumPy; false with an error.
bool next_key(PyObject* generator, std::uint64_t* key);

// The same of a function of bits that are drawn anew each time; false with an error. The generator
// is the first argument of the call.
template <class F>
static inline bool run_drawn(PyObject* generator, const F& f) {
    if (tapes_in_the_making != 0 && tape_keeps()) {
        keep_draw([f](std::uint64_t key) { return done_by(f, key); });
        return true;
    }
    std::uint64_t key;
    return next_key(generator, &key) && done_by(f, key);
}

}  // namespace chainrule
