// Arrays from and to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace situate::bindings {

template <typename T, size_t N>
using Array =
    nanobind::ndarray<const T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T>
using Numpy = nanobind::ndarray<nanobind::numpy, T>;

// Hands a vector to numpy without a copy.
template <typename T, typename Allocator>
Numpy<T> to_numpy(std::vector<T, Allocator>&& values, std::initializer_list<size_t> shape) {
  using Values = std::vector<T, Allocator>;
  auto* owned = new Values(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<Values*>(p); });
  return Numpy<T>(owned->data(), shape, owner);
}

}  // namespace situate::bindings
