// Updates of parameters by optimizers, and what is done to gradients before: one pass over memory.
#pragma once

#include "isa.hpp"

namespace chainrule {

// The rules of chainrule.optim; update_binding.cpp knows them by the names of their functions.
enum class Rule {
    sgd,
    sgdw,
    averaged_momentum,
    lion,
    adam,
    adamax,
    nadam,
    radam,
    adagrad,
    rmsprop,
    adadelta,
    asgd,
    rprop,
    rprop_minus,
    rprop_plus,
    quickprop,
    delta_delta,
    delta_bar_delta,
};

constexpr int MAX_STATES = 3;

// The constants of all rules, by the names that they have there; truths are 0 or 1.
struct UpdateConstants {
    double lr, alpha, beta1, beta2, centered, correction1, correction2, dampening, decoupled, eps,
        eps_in_root, eta, etaminus, etaplus, gamma, gradient_term, growth, kappa, lambd, largest,
        maximize, momentum, mu, nesterov, of_g, of_m, phi, rho, slowdown, smallest, theta, trust,
        undo, weight_decay;
};

// n numbers from x on.
template <class T>
struct update_functions {
    // states has MAX_STATES pointers, those that the rule does not have are null.
    void (*apply)(Rule rule, std::int64_t n, T* p, const T* g, T* const* states,
                  const UpdateConstants& c);
    bool (*finite)(std::int64_t n, const T* x);
    double (*sum_of_squares)(std::int64_t n, const T* x);
    double (*largest)(std::int64_t n, const T* x);  // the largest magnitude; NaN if there is one
    void (*scale)(std::int64_t n, T* x, double factor);
    void (*clamp)(std::int64_t n, T* x, double low, double high);
};

struct update_table {
    update_functions<float> f;
    update_functions<double> d;
};

CHAINRULE_TABLES(update)

}  // namespace chainrule
