// Values that stand for "at no time" and "no such index".
#pragma once

#include <cstdint>
#include <limits>

namespace situate {

inline constexpr double never = std::numeric_limits<double>::infinity();
inline constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

}  // namespace situate
