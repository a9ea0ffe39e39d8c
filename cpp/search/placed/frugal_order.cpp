#include "search/placed/frugal_order.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>

namespace situate::search {

namespace {

class Frugal {
 public:
  Frugal(const Copies& copies, std::span<const int32_t> line)
      : copies_(copies),
        p_(copies.problem()),
        line_(line),
        place_(p_.n),
        needs_(p_.n, 0),
        done_(p_.n, 0),
        users_(copies.all().size()) {
    for (int place = 0; place < p_.n; ++place) place_[line[place]] = place;
    for (size_t copy = 0; copy < users_.size(); ++copy)
      users_[copy] = static_cast<int32_t>(copies.users(static_cast<int>(copy)).size());
    for (int op = 0; op < p_.n; ++op)
      for (const int tensor : p_.inputs_of(op)) needs_[op] += !copies.late(p_.producer[tensor]);
    for (int op = 0; op < p_.n; ++op)
      if (needs_[op] == 0 && !copies.late(op)) open(op);
  }

  std::vector<int32_t> order() && {
    while (!ready_.empty()) {
      const int op = line_[ready_.top().place];
      ready_.pop();
      if (!done_[op]) run(op);
    }
    return std::move(order_);
  }

 private:
  struct Candidate {
    int64_t bytes;  // that it takes
    int32_t place;  // in the line
    auto operator<=>(const Candidate&) const = default;
  };

  void open(int op) { ready_.push({std::max<int64_t>(0, net(op)), place_[op]}); }

  // Bytes that an op takes more than it lets go of.
  int64_t net(int op) const {
    int64_t bytes = 0;
    for (const int tensor : p_.outputs_of(op)) bytes += made(tensor);
    for (int input = p_.input_start[op]; input < p_.input_start[op + 1]; ++input) {
      const int copy = copies_.read_as(input), producer = p_.producer[p_.inputs[input]];
      if (copy < 0) continue;
      if (copies_.late(producer) && !done_[producer]) bytes += copies_.bytes(copy);
      if (users_[copy] == 1 && !copies_[copy].stays) bytes -= copies_.bytes(copy);
    }
    return bytes;
  }

  // What is read at home by nobody is gone once it has been sent.
  int64_t made(int tensor) const {
    int64_t bytes = 0;
    for (int copy = copies_.first_of(tensor); copy < copies_.end_of(tensor); ++copy)
      if (users_[copy] > 0 || copies_[copy].stays) bytes += copies_.bytes(copy);
    return bytes;
  }

  void run(int op) {
    for (const int tensor : p_.inputs_of(op))
      if (const int producer = p_.producer[tensor]; copies_.late(producer) && !done_[producer])
        append(producer);
    append(op);
    for (int input = p_.input_start[op]; input < p_.input_start[op + 1]; ++input)
      if (const int copy = copies_.read_as(input); copy >= 0 && --users_[copy] == 1) free_by(copy);
    for (const int tensor : p_.outputs_of(op))
      for (const int consumer : p_.consumers_of(tensor))
        if (--needs_[consumer] == 0) open(consumer);
  }

  void append(int op) {
    done_[op] = 1;
    order_.push_back(op);
  }

  // The one op that still reads a copy frees it.
  void free_by(int copy) {
    for (const int user : copies_.users(copy))
      if (!done_[user] && needs_[user] == 0) open(user);
  }

  const Copies& copies_;
  const Problem& p_;
  const std::span<const int32_t> line_;
  std::vector<int32_t> place_, needs_;
  std::vector<uint8_t> done_;
  std::vector<int32_t> users_;  // of each copy, that have not run
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> ready_;
  std::vector<int32_t> order_;
};

}  // namespace

std::vector<int32_t> frugal_order(const Problem& problem, std::span<const int32_t> device,
                                  std::span<const int32_t> line) {
  const Copies copies(problem, device, line);
  return Frugal(copies, line).order();
}

}  // namespace situate::search
