// The activations of an LSTM layer as arrays for Python.
#pragma once

#include <cstddef>
#include <tuple>

#include "bindings/arrays.h"
#include "nn/buffer.h"
#include "nn/lstm.h"

namespace situate::bindings {

using nn::gates;

// Of T steps of k sequences with h units.
template <typename T>
struct ActivationArrays {
  ActivationArrays(size_t steps, size_t k, size_t h)
      : steps(steps),
        k(k),
        h(h),
        gate(steps * k * gates * h),
        cell(steps * k * h),
        hidden(steps * k * h) {}

  nn::Activations<T> pointers() { return {gate.data(), cell.data(), hidden.data()}; }
  auto arrays() {
    return std::make_tuple(to_numpy(std::move(gate), {steps, k, gates * h}),
                           to_numpy(std::move(cell), {steps, k, h}),
                           to_numpy(std::move(hidden), {steps, k, h}));
  }

  size_t steps, k, h;
  nn::Buffer<T> gate, cell, hidden;
};

}  // namespace situate::bindings
