// What a search makes small.
#pragma once

namespace situate::search {

enum class Goal { time, memory };

}  // namespace situate::search
