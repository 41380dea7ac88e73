// Updates of parameters by optimizers, and what is done to gradients before: one pass over memory.
#pragma once

#include "isa.hpp"

namespace chainrule {

// The constants of all rules, by the names that they have in chainrule.optim; truths are 0 or 1.
#define CHAINRULE_CONSTANTS(EACH) \
    EACH(alpha)                   \
    EACH(beta1)                   \
    EACH(beta2)                   \
    EACH(centered)                \
    EACH(correction1)             \
    EACH(correction2)             \
    EACH(dampening)               \
    EACH(decoupled)               \
    EACH(eps)                     \
    EACH(eps_in_root)             \
    EACH(eta)                     \
    EACH(etaminus)                \
    EACH(etaplus)                 \
    EACH(gamma)                   \
    EACH(gradient_term)           \
    EACH(growth)                  \
    EACH(kappa)                   \
    EACH(lambd)                   \
    EACH(largest)                 \
    EACH(maximize)                \
    EACH(momentum)                \
    EACH(mu)                      \
    EACH(nesterov)                \
    EACH(of_g)                    \
    EACH(of_m)                    \
    EACH(phi)                     \
    EACH(rho)                     \
    EACH(slowdown)                \
    EACH(smallest)                \
    EACH(theta)                   \
    EACH(trust)                   \
    EACH(undo)                    \
    EACH(weight_decay)

#define CHAINRULE_EACH(name) double name;
struct UpdateConstants {
    double lr;
    CHAINRULE_CONSTANTS(CHAINRULE_EACH)
};
#undef CHAINRULE_EACH

constexpr int MAX_STATES = 3;

#define CHAINRULE_DECAY weight_decay, maximize
#define CHAINRULE_MOMENTA momentum, dampening, nesterov, CHAINRULE_DECAY
#define CHAINRULE_MOMENTS beta1, beta2, eps, decoupled, correction1, correction2, CHAINRULE_DECAY
#define CHAINRULE_LIMITS etaminus, etaplus, smallest, largest, maximize

// A rule: the name by which an optimizer asks for it, its struct in update.inc, the fewest and the
// most states that it has, and all constants that it is given.
#define CHAINRULE_RULES(EACH, WITH)                                                  \
    EACH(WITH, sgd, Sgd, 0, 1, CHAINRULE_MOMENTA)                                    \
    EACH(WITH, sgdw, Sgdw, 0, 1, CHAINRULE_MOMENTA)                                  \
    EACH(WITH, averaged_momentum, AveragedMomentum, 1, 1, momentum, CHAINRULE_DECAY) \
    EACH(WITH, lion, Lion, 1, 1, beta1, beta2, CHAINRULE_DECAY)                      \
    EACH(WITH, asgd, Asgd, 1, 1, lambd, eta, mu, CHAINRULE_DECAY)                    \
    EACH(WITH, adam, Adam, 2, 3, eps_in_root, CHAINRULE_MOMENTS)                     \
    EACH(WITH, adamax, Adamax, 2, 2, CHAINRULE_MOMENTS)                              \
    EACH(WITH, nadam, Nadam, 2, 2, of_g, of_m, CHAINRULE_MOMENTS)                    \
    EACH(WITH, radam, Radam, 2, 2, trust, CHAINRULE_MOMENTS)                         \
    EACH(WITH, adagrad, Adagrad, 1, 1, eps, slowdown, eps_in_root, CHAINRULE_DECAY)  \
    EACH(WITH, rmsprop, Rmsprop, 1, 3, alpha, eps, momentum, centered, eps_in_root,  \
         CHAINRULE_DECAY)                                                            \
    EACH(WITH, adadelta, Adadelta, 2, 2, rho, eps, CHAINRULE_DECAY)                  \
    EACH(WITH, rprop, Rprop, 2, 2, CHAINRULE_LIMITS)                                 \
    EACH(WITH, rprop_minus, RpropMinus, 2, 2, CHAINRULE_LIMITS)                      \
    EACH(WITH, rprop_plus, RpropPlus, 3, 3, undo, CHAINRULE_LIMITS)                  \
    EACH(WITH, quickprop, Quickprop, 2, 2, growth, gradient_term, CHAINRULE_DECAY)   \
    EACH(WITH, delta_delta, DeltaDelta, 2, 2, gamma, CHAINRULE_DECAY)                \
    EACH(WITH, delta_bar_delta, DeltaBarDelta, 2, 2, kappa, phi, theta, CHAINRULE_DECAY)

// The rules: states has MAX_STATES pointers, those that are not there are null.
// The others: n numbers from x on. largest: the largest magnitude; NaN if there is one
#define CHAINRULE_KERNELS_update(KERNEL)                         \
    CHAINRULE_RULES(CHAINRULE_RULE_KERNEL, KERNEL)               \
    KERNEL(bool, finite, (std::int64_t n, const T* x))           \
    KERNEL(double, sum_of_squares, (std::int64_t n, const T* x)) \
    KERNEL(double, largest, (std::int64_t n, const T* x))        \
    KERNEL(void, scale, (std::int64_t n, T* x, double factor))   \
    KERNEL(void, clamp, (std::int64_t n, T* x, double low, double high))

#define CHAINRULE_RULE_KERNEL(KERNEL, name, ...) \
    KERNEL(void, name,                           \
           (std::int64_t n, T* p, const T* g, T* const* states, const UpdateConstants& c))

CHAINRULE_FAMILY(update)

template <class T>
using UpdateFunction = void (*)(std::int64_t n, T* p, const T* g, T* const* states,
                                const UpdateConstants& c);
using UpdateRule = Chosen<update_functions, UpdateFunction>;

}  // namespace chainrule
