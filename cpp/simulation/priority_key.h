// Sort keys that order ops by priority, and ops of one priority by their index: the op with the
// larger key goes first.
#pragma once

#include <bit>
#include <cstdint>

namespace situate::sim {

inline uint64_t priority_key(float priority, int32_t index) {
  const uint32_t bits = std::bit_cast<uint32_t>(priority + 0.0f);  // -0 and 0 are one priority
  const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(ordered) << 32 | (0xffffffffu - static_cast<uint32_t>(index));
}

inline int32_t index_of(uint64_t key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}

}  // namespace situate::sim
