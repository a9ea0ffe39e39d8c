#include "search/placed/draining_order.h"

#include <utility>

namespace situate::search {

namespace {

class Draining {
 public:
  explicit Draining(const Problem& problem)
      : p_(problem), next_input_(problem.input_start.begin(), problem.input_start.end() - 1) {
    order_.reserve(p_.n);
    done_.assign(p_.n, 0);
  }

  std::vector<int32_t> order(std::span<const int32_t> line) && {
    for (const int op : line) {
      pull(op);
      for (; oldest_ < made_.size(); ++oldest_)
        for (const int reader : p_.consumers_of(made_[oldest_])) pull(reader);
    }
    return std::move(order_);
  }

 private:
  // Runs an op behind all that it waits for.
  void pull(int op) {
    if (done_[op]) return;
    waiting_.push_back(op);
    while (!waiting_.empty()) {
      const int last = waiting_.back();
      if (next_input_[last] < p_.input_start[last + 1]) {
        const int producer = p_.producer[p_.inputs[next_input_[last]++]];
        if (!done_[producer]) waiting_.push_back(producer);
        continue;
      }
      waiting_.pop_back();
      if (!done_[last]) run(last);
    }
  }

  void run(int op) {
    done_[op] = 1;
    order_.push_back(op);
    for (const int tensor : p_.outputs_of(op))
      if (p_.size[tensor] > 0 && !p_.resident[tensor]) made_.push_back(tensor);
  }

  const Problem& p_;
  std::vector<int32_t> next_input_;  // of each op: the first that was not looked at
  std::vector<uint8_t> done_;
  std::vector<int32_t> waiting_;  // each op reads of the one behind it
  std::vector<int32_t> made_;     // tensors that take memory
  size_t oldest_ = 0;             // of them that may still be there
  std::vector<int32_t> order_;
};

}  // namespace

std::vector<int32_t> draining_order(const Problem& problem, std::span<const int32_t> line) {
  return Draining(problem).order(line);
}

}  // namespace situate::search
