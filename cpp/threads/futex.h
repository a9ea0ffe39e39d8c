// Counters in shared memory: one process posts a value, others wait for it without using a core
// (futexes: H. Franke et al., Ottawa Linux Symposium 2002).
#pragma once

#include <cstdint>

namespace situate::threads {

// Sets `flag` to `value`, after everything this process wrote before (release), and wakes all
// waiters.
void post(uint32_t& flag, uint32_t value);

// Waits until `flag` has reached `value`, in the order of a counter that wraps around, for at most
// `limit` seconds. Spins for the first `spin` seconds, since a sleeping process takes a while to
// wake up. On return everything written before the post can be read (acquire). False after
// `limit`.
bool wait(const uint32_t& flag, uint32_t value, double limit, double spin);

}  // namespace situate::threads
