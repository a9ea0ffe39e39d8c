// A vector whose numbers are not initialised, for results that are written before they are read.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace situate::nn {

// An allocator that leaves new numbers as they are, where std::allocator sets them to zero.
template <typename T>
struct Uninitialised : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = Uninitialised<U>;
  };
  Uninitialised() = default;
  template <typename U>
  Uninitialised(const Uninitialised<U>&) noexcept {}
  template <typename U>
  void construct(U* p) noexcept {
    ::new (static_cast<void*>(p)) U;
  }
  template <typename U, typename... Values>
  void construct(U* p, Values&&... values) {
    ::new (static_cast<void*>(p)) U(std::forward<Values>(values)...);
  }
};

template <typename T>
using Buffer = std::vector<T, Uninitialised<T>>;

}  // namespace situate::nn
