// Lists of numbers, a row an op or a tensor, one behind the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace situate::bounds {

class Rows {
 public:
  // Row `of[i]` holds `items[i]`, for all i in order.
  Rows(int rows, std::span<const int32_t> of, std::span<const int32_t> items)
      : start_(rows + 1), items_(items.size()) {
    for (const int row : of) ++start_[row + 1];
    for (int row = 0; row < rows; ++row) start_[row + 1] += start_[row];
    auto place = start_;
    for (size_t i = 0; i < items.size(); ++i) items_[place[of[i]]++] = items[i];
  }

  int64_t items() const { return static_cast<int64_t>(items_.size()); }
  std::span<const int32_t> operator[](int row) const {
    return {items_.data() + start_[row], items_.data() + start_[row + 1]};
  }

 private:
  std::vector<size_t> start_;
  std::vector<int32_t> items_;
};

}  // namespace situate::bounds
