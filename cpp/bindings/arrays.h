// numpy arrays as arguments and as results of the core.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <type_traits>
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

template <typename A>
auto copy_of(const A& array) {
  using T = std::remove_const_t<typename A::Scalar>;
  return std::vector<T>{array.data(), array.data() + array.size()};
}

template <typename A>
auto view(const A& array) {
  return std::span(array.data(), array.size());
}

template <typename A>
bool has_shape(const A& array, std::initializer_list<size_t> shape) {
  return std::equal(shape.begin(), shape.end(), array.shape_ptr());
}

}  // namespace situate::bindings
