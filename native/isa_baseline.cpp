#include "isa.hpp"
#include "families.hpp"
#define CHAINRULE_ISA baseline
#include "families.inc"
