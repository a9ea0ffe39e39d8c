// A matrix packed into panels of columns (K. Goto, R. van de Geijn, ACM TOMS 34(3), 2008), by which
// a few rows at a time are multiplied.
#pragma once

#include <algorithm>
#include <cstddef>

#include "nn/buffer.h"
#include "nn/simd.h"
#include "threads/thread_pool.h"

namespace situate::nn {

using threads::ThreadPool;

constexpr int panel_width = 32;  // columns: the sums of four rows by them stay in registers

template <typename T>
class PackedMatrix {
 public:
  // The matrix (rows, columns) of numbers entry(i, j), with at least one row. The last panel is
  // filled up with zeros.
  template <typename Entry>
  PackedMatrix(int rows, int columns, ThreadPool& pool, Entry entry)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(count()) * rows * panel_width) {
    pool.parallel_for(count(), [&](int number) { fill(number, entry); });
  }

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int count() const { return (columns_ + panel_width - 1) / panel_width; }
  const T* panel(int number) const {
    return values_.data() + static_cast<size_t>(number) * rows_ * panel_width;
  }

 private:
  // Reads a block of `lanes` rows by panel_width columns at a time, so that neither consecutive
  // rows nor consecutive columns evict each other from the cache.
  template <typename Entry>
  void fill(int number, const Entry& entry) {
    const int first = number * panel_width;
    for (int top = 0; top < rows_; top += lanes) {
      T* block = values_.data() + (static_cast<size_t>(number) * rows_ + top) * panel_width;
      for (int j = 0; j < panel_width; ++j)
        for (int i = 0; i < std::min(lanes, rows_ - top); ++i)
          block[i * panel_width + j] = first + j < columns_ ? entry(top + i, first + j) : T{0};
    }
  }

  int rows_, columns_;
  Buffer<T> values_;
};

// result (k, columns) = x (k, rows) times the matrix, both contiguous. Every number is added up by
// one thread in one order, so that the result does not depend on the number of threads.
void multiply(const PackedMatrix<float>& matrix, const float* x, int k, float* result,
              ThreadPool& pool);
void multiply(const PackedMatrix<double>& matrix, const double* x, int k, double* result,
              ThreadPool& pool);

}  // namespace situate::nn
