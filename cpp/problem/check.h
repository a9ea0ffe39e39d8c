// Checks of arguments that come from Python.
#pragma once

#include <stdexcept>

namespace situate::problem {

inline void check(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace situate::problem
