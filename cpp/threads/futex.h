// Counters in memory that processes share: one posts, others wait without burning a core.
#pragma once

#include <cstdint>

namespace situate::threads {

// Lets `flag` be `value` for everyone, after all that was written before, and wakes who waits.
void post(uint32_t& flag, uint32_t value);

// Waits until `flag` has reached `value` (in the order of a counter that wraps around), for `limit`
// seconds at most, the first `spin` of them awake: who sleeps takes a while to wake up. What was
// written before the post can then be read. False where it did not.
bool wait(const uint32_t& flag, uint32_t value, double limit, double spin);

}  // namespace situate::threads
