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
  if (name == "time") return search::Goal::time;
  if (name == "memory") return search::Goal::memory;
  problem::check(name == "shortfall", "the goal is time, memory or shortfall");
  return search::Goal::shortfall;
}

}  // namespace situate::bindings
