// A device with memory of its own that needs no hardware: PyTorch's PrivateUse1, whose tensors no
// kernel for CPUs takes. What is computed on it is computed on the CPU and copied back.

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr auto apart = c10::DeviceType::PrivateUse1;

struct Allocator final : at::Allocator {
  at::DataPtr allocate(size_t nbytes) override {
    void* data = nbytes ? std::malloc(nbytes) : nullptr;
    return {data, data, &std::free, at::Device(apart, 0)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }
};

Allocator allocator;
REGISTER_ALLOCATOR(apart, &allocator);
C10_REGISTER_GUARD_IMPL(PrivateUse1, c10::impl::NoOpDeviceGuardImpl<apart>);

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (!tensor.device().is_privateuseone()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar item(const at::Tensor& tensor) { return on_cpu(tensor).item(); }

const at::Tensor& resize(const at::Tensor& self, at::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto bytes =
      at::detail::computeStorageNbytesContiguous(sizes, self.itemsize(), self.storage_offset());
  auto* storage = self.storage().unsafeGetStorageImpl();
  if (storage->nbytes() < bytes) {
    auto data = allocator.allocate(bytes);
    if (storage->nbytes()) std::memcpy(data.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (format) self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return self;
}

at::Tensor on_apart(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(at::Device(apart, 0)) : tensor;
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, c10::IntArrayRef stride,
                       c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                       c10::IntArrayRef output_padding, int64_t groups) {
  auto given = bias && bias->defined() ? std::optional(on_cpu(*bias)) : std::nullopt;
  return on_apart(at::convolution(on_cpu(x), on_cpu(weight), given, stride, padding, dilation,
                                  transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight,
    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
    c10::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  auto sizes = weight.size(transposed ? 1 : 0) * (transposed ? groups : 1);
  auto found = at::convolution_backward(on_cpu(gradient), on_cpu(x), on_cpu(weight),
                                        c10::IntArrayRef(sizes), stride, padding, dilation,
                                        transposed, output_padding, groups, wanted);
  return {on_apart(std::get<0>(found)), on_apart(std::get<1>(found)), on_apart(std::get<2>(found))};
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &item);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace
