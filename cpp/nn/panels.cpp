#include "nn/panels.h"

#include <cstring>

namespace situate::nn {
namespace {

constexpr int most_rows = 4;

// r rows of panel_width sums, `step` numbers apart: x (r, n) times a panel of n rows.
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

// A function for each number of rows: in one of all, compilers run out of registers.
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
void multiply_panel(const Panels<T>& matrix, int p, const T* x, int k, T* result) {
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

// Multiplications of a piece, a microsecond or two; less is not worth a second thread.
constexpr size_t piece = 1 << 16;

template <typename T>
void multiply_all(const Panels<T>& matrix, const T* x, int k, T* result, Team& team) {
  const size_t size = static_cast<size_t>(matrix.rows()) * panel_width * k;
  const int each = static_cast<int>(std::max<size_t>(1, piece / std::max<size_t>(1, size)));
  team.share((matrix.count() + each - 1) / each, [&](int number) {
    const int first = number * each;
    for (int p = first; p < std::min(first + each, matrix.count()); ++p)
      multiply_panel(matrix, p, x, k, result);
  });
}

}  // namespace

void multiply(const Panels<float>& matrix, const float* x, int k, float* result, Team& team) {
  multiply_all(matrix, x, k, result, team);
}

void multiply(const Panels<double>& matrix, const double* x, int k, double* result, Team& team) {
  multiply_all(matrix, x, k, result, team);
}

}  // namespace situate::nn
