// Numbers that are written before they are read: what they are at first does not matter.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace situate::nn {

template <typename T>
struct Unset : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = Unset<U>;
  };
  Unset() = default;
  template <typename U>
  Unset(const Unset<U>&) noexcept {}
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
using Buffer = std::vector<T, Unset<T>>;

}  // namespace situate::nn
