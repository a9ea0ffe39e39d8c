// What Python calls by name.
#pragma once

#include <stdexcept>
#include <string>

#include "problem/check.h"
#include "search/goal.h"
#include "simulation/simulator.h"

namespace situate::bindings {

inline sim::Decoder decoder_named(const std::string& name) {
  if (name == "eager") return sim::Decoder::eager;
  if (name == "serial") return sim::Decoder::serial;
  throw std::invalid_argument("unknown decoder " + name);
}

inline search::Goal goal_named(const std::string& name) {
  problem::check(name == "time" || name == "memory", "the goal is time or memory");
  return name == "time" ? search::Goal::time : search::Goal::memory;
}

}  // namespace situate::bindings
