// What a search makes small: the time of a step, the peak of the fullest device, or the bytes above
// all capacities in sum.
#pragma once

namespace situate::search {

enum class Goal { time, memory, shortfall };

// The mean of the devices' peaks that counts beside the largest one, for the goal of memory: none,
// the arithmetic mean, or the power mean of degree 4, which is smaller where peaks are level.
enum class PeakMean { none, arithmetic, power };

}  // namespace situate::search
