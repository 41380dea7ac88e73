// The declarations of all families of kernels.
#pragma once

#include "update.hpp"
