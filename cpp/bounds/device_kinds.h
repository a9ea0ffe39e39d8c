// Devices that are alike: whatever may run on one takes as long on the other.
#pragma once

#include <vector>

#include "problem/problem.h"

namespace situate::bounds {

// A link between two devices.
struct Link {
  int source, target;
  int source_kind;
};

struct DeviceKinds {
  explicit DeviceKinds(const problem::Problem& problem);

  int count() const { return static_cast<int>(first.size()); }

  std::vector<int> of_device;  // d
  std::vector<int> first;      // a device of each kind
  std::vector<int> devices;    // how many there are of each kind
  // To each kind: of the links from one kind that are as fast, one.
  std::vector<std::vector<Link>> links_to;
};

}  // namespace situate::bounds
