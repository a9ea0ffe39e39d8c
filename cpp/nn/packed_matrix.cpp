#include "nn/packed_matrix.h"

#include <cstring>

namespace situate::nn {
namespace {

constexpr int most_rows = 4;  // multiplied by a panel at once

// sums (r, panel_width) = x (r, n) times a panel (n, panel_width); rows of sums are `step` apart.
template <int r, typename T>
SITUATE_INLINE void multiply_rows(const T* panel, int n, const T* x, T* sums, size_t step) {
  T sum[r][panel_width];
  for (int s = 0; s < r; ++s)
    for (int j = 0; j < panel_width; ++j) sum[s][j] = x[static_cast<size_t>(s) * n] * panel[j];
  for (int i = 1; i < n; ++i)
    for (int s = 0; s < r; ++s) {
      const T factor = x[static_cast<size_t>(s) * n + i];
      for (int j = 0; j < panel_width; ++j)
        sum[s][j] += factor * panel[static_cast<size_t>(i) * panel_width + j];
    }
  for (int s = 0; s < r; ++s) std::memcpy(sums + s * step, sum[s], sizeof sum[s]);
}

// One function a number of rows: in a function for all of them, compilers run out of registers.
#define SITUATE_ROWS(r, T)                                                                     \
  SITUATE_EVERY_WIDTH void rows_##r(const T* panel, int n, const T* x, T* sums, size_t step) { \
    multiply_rows<r>(panel, n, x, sums, step);                                                 \
  }
SITUATE_ROWS(1, float)
SITUATE_ROWS(2, float)
SITUATE_ROWS(3, float)
SITUATE_ROWS(4, float)
SITUATE_ROWS(1, double)
SITUATE_ROWS(2, double)
SITUATE_ROWS(3, double)
SITUATE_ROWS(4, double)
#undef SITUATE_ROWS

template <typename T>
void multiply_few(const T* panel, int n, const T* x, int r, T* sums, size_t step) {
  if (r == 1) return rows_1(panel, n, x, sums, step);
  if (r == 2) return rows_2(panel, n, x, sums, step);
  if (r == 3) return rows_3(panel, n, x, sums, step);
  rows_4(panel, n, x, sums, step);
}

template <typename T>
void multiply_panel(const PackedMatrix<T>& matrix, int p, const T* x, int k, T* result) {
  const size_t rows = matrix.rows(), columns = matrix.columns();
  const size_t first = static_cast<size_t>(p) * panel_width;
  const size_t width = std::min<size_t>(panel_width, columns - first);
  for (int s = 0; s < k; s += most_rows) {
    const int r = std::min(most_rows, k - s);
    T* to = result + s * columns + first;
    if (width == panel_width) {
      multiply_few(matrix.panel(p), matrix.rows(), x + s * rows, r, to, columns);
      continue;
    }
    T sums[most_rows * panel_width];
    multiply_few(matrix.panel(p), matrix.rows(), x + s * rows, r, sums, panel_width);
    for (int i = 0; i < r; ++i) std::copy_n(sums + i * panel_width, width, to + i * columns);
  }
}

// Multiplications a task takes at least, a microsecond or two: less is not worth a second thread.
constexpr size_t multiplications_a_task = 1 << 16;

template <typename T>
void multiply_all(const PackedMatrix<T>& matrix, const T* x, int k, T* result, ThreadPool& pool) {
  const size_t size = static_cast<size_t>(matrix.rows()) * panel_width * k;
  const int each =
      static_cast<int>(std::max<size_t>(1, multiplications_a_task / std::max<size_t>(1, size)));
  pool.parallel_for((matrix.count() + each - 1) / each, [&](int number) {
    const int first = number * each;
    for (int p = first; p < std::min(first + each, matrix.count()); ++p)
      multiply_panel(matrix, p, x, k, result);
  });
}

}  // namespace

void multiply(const PackedMatrix<float>& matrix, const float* x, int k, float* result,
              ThreadPool& pool) {
  multiply_all(matrix, x, k, result, pool);
}

void multiply(const PackedMatrix<double>& matrix, const double* x, int k, double* result,
              ThreadPool& pool) {
  multiply_all(matrix, x, k, result, pool);
}

}  // namespace situate::nn
