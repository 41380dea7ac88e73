// Updates of parameters by optimizers, and checks of their gradients: one pass over the memory.
#pragma once

#include "isa.hpp"

namespace chainrule {

struct SgdConstants {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
};

struct AdamConstants {
    double lr, beta1, beta2, eps, weight_decay, correction1, correction2;
    bool decoupled, maximize, eps_in_root;
};

struct update_table {
    // buffer may be null: no momentum.
    void (*sgd_f)(std::int64_t n, float* p, const float* g, float* buffer, const SgdConstants& c);
    void (*sgd_d)(std::int64_t n, double* p, const double* g, double* buffer, const SgdConstants& c);
    // largest may be null: no amsgrad.
    void (*adam_f)(std::int64_t n, float* p, const float* g, float* m, float* v, float* largest,
                   const AdamConstants& c);
    void (*adam_d)(std::int64_t n, double* p, const double* g, double* m, double* v,
                   double* largest, const AdamConstants& c);
    bool (*finite_f)(std::int64_t n, const float* x);
    bool (*finite_d)(std::int64_t n, const double* x);
};

CHAINRULE_TABLES(update)

}  // namespace chainrule
