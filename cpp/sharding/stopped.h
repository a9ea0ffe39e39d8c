// The end of work before its time.
#pragma once

#include <functional>

namespace situate::sharding {

// True once work is to end. Threads ask it at the same time.
using Stopped = std::function<bool()>;

}  // namespace situate::sharding
