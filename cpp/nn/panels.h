// A matrix kept in panels of columns, which a few rows at a time are multiplied by.
#pragma once

#include <algorithm>
#include <cstddef>

#include "nn/buffer.h"
#include "nn/simd.h"
#include "threads/thread_pool.h"

namespace situate::nn {

using threads::Team;

constexpr int panel_width = 32;  // columns: what four rows make of them stays in registers

template <typename T>
class Panels {
 public:
  // rows x columns, where entry(i, j) is one number; at least one row.
  template <typename Entry>
  Panels(int rows, int columns, Team& team, Entry entry)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(count()) * rows * panel_width) {
    team.share(count(), [&](int number) { fill(number, entry); });
  }

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int count() const { return (columns_ + panel_width - 1) / panel_width; }
  const T* panel(int number) const {
    return values_.data() + static_cast<size_t>(number) * rows_ * panel_width;
  }

 private:
  // A square at a time: neither its rows nor its columns crowd each other out of the cache.
  template <typename Entry>
  void fill(int number, const Entry& entry) {
    const int first = number * panel_width;
    for (int top = 0; top < rows_; top += lanes) {
      T* square = values_.data() + (static_cast<size_t>(number) * rows_ + top) * panel_width;
      for (int j = 0; j < panel_width; ++j)
        for (int i = 0; i < std::min(lanes, rows_ - top); ++i)
          square[i * panel_width + j] = first + j < columns_ ? entry(top + i, first + j) : T{0};
    }
  }

  int rows_, columns_;
  Buffer<T> values_;
};

// result (k, columns) = x (k, rows) times the matrix, both without gaps. A number is added up by
// one thread, so how many there are changes nothing.
void multiply(const Panels<float>& matrix, const float* x, int k, float* result, Team& team);
void multiply(const Panels<double>& matrix, const double* x, int k, double* result, Team& team);

}  // namespace situate::nn
