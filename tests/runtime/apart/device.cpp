// A device with memory of its own that needs no hardware: PyTorch's PrivateUse1, whose tensors no
// kernel for CPUs takes. What is computed on it is computed on the CPU and copied back.
//
// Copies on streams beside the first one are made as late as they may be: when something waits for
// them. A copy that leaves before it waits for what is computed is an error, and so is letting go
// of memory that came on another stream and that the first is not known to read; memory that is let
// go of is overwritten with ones at once, unless a stream is known to read it.

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <malloc.h>
#include <torch/library.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr auto apart = c10::DeviceType::PrivateUse1;

using StreamId = c10::StreamId;
constexpr StreamId computing = 0;
thread_local StreamId current = computing;

std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;

struct Queue {
  std::deque<std::function<void()>> tasks;
  int64_t done = 0;
  int64_t waited_for = 0;  // what was computed before the last thing that it waits for
};

struct Event {
  StreamId stream;
  int64_t end;       // tasks of the stream before it
  int64_t computed;  // as far as the stream knows
};

struct Memory {
  StreamId stream;  // that it was allocated on
  std::set<StreamId> readers;
};

std::map<StreamId, Queue> queues;
std::map<void*, Memory> memory;
std::vector<void*> released;
int64_t computed = 0;
std::string fault;

void drain(StreamId stream, int64_t end) {
  Lock lock(mutex);
  auto& queue = queues[stream];
  while (queue.done < end && !queue.tasks.empty()) {
    auto task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
    ++queue.done;
    task();
  }
}

int64_t end_of(StreamId stream) {
  return queues[stream].done + static_cast<int64_t>(queues[stream].tasks.size());
}

void drain_all() {
  Lock lock(mutex);
  for (auto& [stream, queue] : queues) drain(stream, end_of(stream));
  for (void* data : released) std::free(data);
  released.clear();
  TORCH_CHECK(fault.empty(), fault);
}

// Before something runs on the current stream at once.
void begin() {
  Lock lock(mutex);
  drain(current, end_of(current));
  if (current == computing) ++computed;
}

void release(void* data) {
  Lock lock(mutex);
  auto known = memory.extract(data);
  if (known.empty()) return;
  const auto& [stream, readers] = known.mapped();
  if (stream != computing && !readers.contains(computing))
    fault = "memory of another stream was let go of while the device may compute with it";
  if (readers.empty()) std::memset(data, 0xff, malloc_usable_size(data));
  released.push_back(data);
}

struct Allocator final : at::Allocator {
  at::DataPtr allocate(size_t nbytes) override {
    if (!nbytes) return {nullptr, nullptr, &release, at::Device(apart, 0)};
    Lock lock(mutex);
    void* data = std::malloc(nbytes);
    memory[data] = {current, {}};
    return {data, data, &release, at::Device(apart, 0)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    begin();
    std::memcpy(to, from, count);
  }
};

Allocator allocator;
REGISTER_ALLOCATOR(apart, &allocator);

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream_of(StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, at::Device(apart, 0), id);
  }
  c10::DeviceType type() const override { return apart; }
  at::Device exchangeDevice(at::Device) const override { return {apart, 0}; }
  at::Device getDevice() const override { return {apart, 0}; }
  void setDevice(at::Device) const override {}
  void uncheckedSetDevice(at::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(at::Device) const override { return stream_of(current); }
  c10::Stream getDefaultStream(at::Device) const override { return stream_of(computing); }
  c10::Stream getNewStream(at::Device, int) const override {
    Lock lock(mutex);
    auto id = static_cast<StreamId>(queues.size()) + 1;
    queues[id];
    return stream_of(id);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return stream_of(std::exchange(current, stream.id()));
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    Lock lock(mutex);
    auto known = stream.id() == computing ? computed : queues[stream.id()].waited_for;
    destroyEvent(*event, 0);
    *event = new Event{stream.id(), end_of(stream.id()), known};
  }
  void block(void* event, const c10::Stream& stream) const override {
    Lock lock(mutex);
    auto known = *static_cast<Event*>(event);
    auto& queue = queues[stream.id()];
    queue.waited_for = std::max(queue.waited_for, known.computed);
    queue.tasks.push_back([known] { drain(known.stream, known.end); });
  }
  bool queryEvent(void* event) const override {
    Lock lock(mutex);
    auto* known = static_cast<Event*>(event);
    return !known || queues[known->stream].done >= known->end;
  }
  void synchronizeEvent(void* event) const override {
    auto* known = static_cast<Event*>(event);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    drain(known->stream, known->end);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    Lock lock(mutex);
    return queues[stream.id()].tasks.empty();
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    Lock lock(mutex);
    drain(stream.id(), end_of(stream.id()));
  }
  void synchronizeDevice(c10::DeviceIndex) const override { drain_all(); }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    Lock lock(mutex);
    if (auto known = memory.find(data.get()); known != memory.end())
      known->second.readers.insert(stream.id());
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

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

// The same memory as a tensor of the CPU, which no Python object holds: a copy that another thread
// makes must not wait for Python's lock.
at::Tensor bare(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor on_cpu(const at::Tensor& tensor) {
  return tensor.device().is_privateuseone() ? bare(tensor) : tensor;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  Lock lock(mutex);
  if (!non_blocking || current == computing) {
    begin();
    on_cpu(to).copy_(on_cpu(from));
    return to;
  }
  auto& queue = queues[current];
  TORCH_CHECK(from.is_cpu() || queue.waited_for == computed, "a copy leaves before it is computed");
  queue.tasks.push_back([from = bare(from), to = bare(to)] {
    c10::InferenceMode inference;
    to.copy_(from);
  });
  return to;
}

void record_stream(at::Tensor& tensor, c10::Stream stream) {
  Guard().recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar item(const at::Tensor& tensor) {
  begin();
  return on_cpu(tensor).item();
}

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
  begin();
  auto given = bias && bias->defined() ? std::optional(on_cpu(*bias)) : std::nullopt;
  return on_apart(at::convolution(on_cpu(x), on_cpu(weight), given, stride, padding, dilation,
                                  transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight,
    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
    c10::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> wanted) {
  begin();
  auto sizes = weight.size(transposed ? 1 : 0) * (transposed ? groups : 1);
  auto found = at::convolution_backward(on_cpu(gradient), on_cpu(x), on_cpu(weight),
                                        c10::IntArrayRef(sizes), stride, padding, dilation,
                                        transposed, output_padding, groups, wanted);
  return {on_apart(std::get<0>(found)), on_apart(std::get<1>(found)), on_apart(std::get<2>(found))};
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  begin();
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
  m.impl("record_stream", &record_stream);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace
