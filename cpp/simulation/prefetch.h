// A hint to the processor that an address will be read soon.
#pragma once

namespace situate::sim {

inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#endif
}

}  // namespace situate::sim
