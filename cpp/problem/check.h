// What comes from Python is refused where it would mean nothing.
#pragma once

#include <stdexcept>

namespace situate::problem {

inline void check(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace situate::problem
