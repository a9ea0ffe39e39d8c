// Decodes a placement and priorities to the one schedule that they stand for, by the rules of
// docs/execution-model.md.
#pragma once

#include <memory>

#include "simulation/live_bytes.h"
#include "simulation/step_memory.h"
#include "simulation/timeline.h"

namespace situate::sim {

class BlockingEager;
class BlockingItems;
class BlockingSerial;
class Overlapped;

// Eager: a free device starts the ready op of the highest priority. Serial: every device runs its
// ops in the priority-topological order of all ops, and waits for the next where it is not ready.
enum class Decoder { eager, serial };

class Simulator {
 public:
  explicit Simulator(const Problem& problem);
  ~Simulator();

  // Returns the makespan in seconds.
  double run(const Decision& decision, Decoder decoder);
  // The same, and writes the peaks (d) in bytes, which takes its time too.
  double run(const Decision& decision, Decoder decoder, int64_t* peak);
  // The same, after which timeline() holds the schedule until the next call.
  double schedule(const Decision& decision, Decoder decoder, int64_t* peak);

  const Timeline& timeline() const { return timeline_; }

 private:
  double run(const Decision& decision, Decoder decoder, int64_t* peak, bool times);
  double decode(const Decision& decision, bool serial, bool count_bytes, bool times);

  const Problem& problem_;
  Timeline timeline_;
  LiveBytes bytes_;
  StepMemory step_memory_;
  std::unique_ptr<Overlapped> overlapped_;
  std::unique_ptr<BlockingItems> items_;
  std::unique_ptr<BlockingSerial> serial_;
  std::unique_ptr<BlockingEager> eager_;
};

}  // namespace situate::sim
