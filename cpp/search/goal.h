// What a search makes small: the time of a step, the peak of the fullest device, or the bytes above
// all capacities in sum.
#pragma once

namespace situate::search {

enum class Goal { time, memory, shortfall };

}  // namespace situate::search
