// What torch asks of a backend: a guard for its devices and streams, the hooks of torch.accelerator, and the operators
// that make, view and copy tensors. fallback.cpp has the others.
#include "runtime.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

namespace simdevice {
namespace {

// ------------------------------------------------------------------------- devices and streams

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kType;
  }
  c10::Device exchangeDevice(c10::Device d) const override {
    return {kType, exchange_device(d.index())};
  }
  c10::Device getDevice() const override {
    return {kType, current_device()};
  }
  void setDevice(c10::Device d) const override {
    exchange_device(d.index());
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.index() < kDevices) {
      exchange_device(d.index());
    }
  }
  c10::Stream getStream(c10::Device d) const override {
    return current_stream(d.index());
  }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return default_stream(d.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override {
    return new_stream(d.index());
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    return new_stream(d.index());
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    return exchange_stream(s);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Mark*>(event);
  }
  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag) const override {
    delete static_cast<Mark*>(*event);
    *event = new Mark(mark(s));
  }
  void block(void* event, const c10::Stream& s) const override {
    if (event) {
      wait_for(s, *static_cast<Mark*>(event));
    }
  }
  bool queryEvent(void* event) const override {
    return !event || passed(*static_cast<Mark*>(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event) {
      synchronize(*static_cast<Mark*>(event));
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return kDevices;
  }
  bool queryStream(const c10::Stream& s) const override {
    return idle(s);
  }
  void synchronizeStream(const c10::Stream& s) const override {
    synchronize(s);
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    synchronize_device(index);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& s) const override {
    record_stream(data, s);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

void resize(c10::StorageImpl* storage, size_t size) {
  const c10::DeviceGuard guard(storage->device());
  const c10::Stream stream = current_stream(storage->device().index());
  const auto kept = static_cast<int64_t>(std::min(size, storage->nbytes()));
  c10::DataPtr data = allocator()->allocate(size);
  const auto bytes = [&](const void* address) {
    at::Tensor t = at::empty({0}, at::TensorOptions(at::kByte));
    View view(t);
    view.data = const_cast<void*>(address);
    view.sizes = {kept};
    return view;
  };
  launch(stream, {bytes(data.get()), bytes(storage->data())}, [](const auto& t) { t[0].copy_(t[1]); });
  storage->set_data_ptr_noswap(std::move(data));
  storage->set_nbytes(size);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return kDevices;
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    exchange_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    resize(storage.unsafeGetStorageImpl(), size);
  }
};

const bool hooked = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  return true;
}();

// ------------------------------------------------------------------------- tensors

at::Tensor filled_if_asked(at::Tensor t) {
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory()) {
    at::native::fill_empty_deterministic_(t);
  }
  return t;
}

at::Tensor empty_sim(
    at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "sim: tensors are strided, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin), "sim: memory of a device is not pinned");
  const c10::OptionalDeviceGuard guard(device);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return filled_if_asked(at::detail::empty_generic(size, allocator(), keys, c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided_sim(
    at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return filled_if_asked(
      at::detail::empty_strided_generic(size, stride, allocator(), keys, c10::dtype_or_default(dtype)));
}

const at::Tensor& resize_sim_(
    const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  at::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const size_t needed =
      at::detail::computeStorageNbytesContiguous(size, self.dtype().itemsize(), self.storage_offset());
  if (self.numel() && needed > self.storage().nbytes()) {
    resize(self.storage().unsafeGetStorageImpl(), needed);
  }
  if (format && *format != at::MemoryFormat::Preserve) {
    impl->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage_sim_(
    at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  const int64_t item = self.dtype().itemsize();
  const size_t needed = stride.empty() ? at::detail::computeStorageNbytesContiguous(size, item, offset)
                                       : at::detail::computeStorageNbytes(size, stride, item, offset);
  TORCH_CHECK(
      c10::multiply_integers(size) == 0 || needed <= source.nbytes(), "sim: set_: the storage has ", source.nbytes(),
      " bytes, and ", needed, " are needed");
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

at::Tensor& set_all_of_storage_sim_(at::Tensor& self, at::Storage source) {
  const auto item = static_cast<int64_t>(self.dtype().itemsize());
  const int64_t size = static_cast<int64_t>(source.nbytes()) / item;
  return at::native::set_storage_cpu_(self, std::move(source), 0, size, {});
}

// ------------------------------------------------------------------------- copies

at::Tensor to_host(const at::Tensor& t) {
  at::Tensor out = at::empty(t.sizes(), t.options().device(at::kCPU));
  const c10::Stream stream = current_stream(t.device().index());
  launch(stream, {View(t)}, [out](const auto& views) { out.copy_(views[0]); });
  synchronize(stream);
  return out;
}

at::Tensor copy_from(const at::Tensor& given, const at::Tensor& target, bool) {
  // what is wrong with a call is said at once; only kernels are late
  at::assert_no_internal_overlap(target);
  const at::Tensor source = given.expand(target.sizes());
  if (target.numel() == 0) {
    return target;
  }
  const auto copy = [](const auto& t) { t[0].copy_(t[1]); };
  if (source.is_cpu()) {
    // as from pageable memory: the host may overwrite its own at once
    forbid_while_capturing(current_stream(target.device().index()), "memory of the host is copied");
    const at::Tensor staged = source.detach().clone();
    launch(current_stream(target.device().index()), {View(target)}, [staged](const auto& t) { t[0].copy_(staged); });
  } else if (target.is_cpu()) {
    target.copy_(to_host(source));
  } else if (source.device() == target.device()) {
    launch(current_stream(target.device().index()), {View(target), View(source)}, copy);
  } else {
    // by way of the host; each device's stream is in order with what it has queued
    forbid_while_capturing(current_stream(target.device().index()), "memory of another device is copied");
    const at::Tensor staged = to_host(source);
    launch(current_stream(target.device().index()), {View(target)}, [staged](const auto& t) { t[0].copy_(staged); });
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  if (source.sizes() != target.sizes()) {
    resize_sim_(target, source.sizes(), std::nullopt);
  }
  return copy_from(source, target, false);
}

at::Tensor& fill_sim_(at::Tensor& self, const at::Scalar& value) {
  at::assert_no_internal_overlap(self);
  if (self.numel()) {
    launch(current_stream(self.device().index()), {View(self)}, [value](const auto& t) { t[0].fill_(value); });
  }
  return self;
}

at::Tensor& zero_sim_(at::Tensor& self) {
  return fill_sim_(self, 0);
}

at::Scalar item_sim(const at::Tensor& self) {
  return to_host(self).item();
}

void record_stream_sim(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty_sim);
  m.impl("empty_strided", empty_strided_sim);
  m.impl("resize_", resize_sim_);
  m.impl("set_.source_Storage_storage_offset", set_storage_sim_);
  m.impl("set_.source_Storage", set_all_of_storage_sim_);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("is_set_to", at::native::is_set_to);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("fill_.Scalar", fill_sim_);
  m.impl("zero_", zero_sim_);
  m.impl("_local_scalar_dense", item_sim);
  m.impl("record_stream", record_stream_sim);
}

// The copy sees to these views itself. What torch does otherwise is copy them first, without end.
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

// What torch.sim is made of, beside torch.accelerator.
TORCH_LIBRARY(simdevice, m) {
  m.def("device_count() -> int", [] { return int64_t{kDevices}; });
  m.def("memory_allocated(int device) -> int", [](int64_t device) { return counters(device).allocated; });
  m.def("max_memory_allocated(int device) -> int", [](int64_t device) { return counters(device).peak; });
  m.def("reset_peak_memory_stats(int device) -> ()", [](int64_t device) { reset_peak(device); });
}

} // namespace
} // namespace simdevice
