#include "internal.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace simdevice {
namespace {

// Addresses of a device are handed out once and never again, as far as this goes.
constexpr size_t kSpace = size_t{1} << 40;
constexpr size_t kAlignment = 512; // as CUDA's allocator aligns
constexpr double kBytesPerSecond = 5e8; // slow enough that work is still under way when the host goes on
constexpr size_t kCached = size_t{1} << 20, kMostCached = 256; // bytes of a block that is kept for reuse, and blocks
constexpr size_t kUnnoticed = size_t{1} << 20; // less memory than this takes no time

using HostMemory = std::unique_ptr<char, decltype(&std::free)>;

struct Block {
  char* address;
  size_t size;
  HostMemory memory{nullptr, &std::free};
  std::vector<Mark> users; // once it is freed: where the streams that may use it stood then
  std::optional<std::weak_ptr<Recording>> graph; // in whose capture it was allocated
  std::vector<c10::Stream> streams;
};

struct Device {
  std::mutex lock; // of all below
  std::string error; // what a kernel did wrong; the device is of no use any more
  char *space = nullptr, *next = nullptr;
  std::map<char*, Block> blocks;
  std::map<char*, Block> freed; // which queued work may still use
  std::multimap<size_t, HostMemory> cache; // what was in blocks that are not used any more
  Counters counters;
};

// Never destroyed: kernels may still run when the process ends.
std::array<Device, kDevices>& devices() {
  static auto* all = new std::array<Device, kDevices>();
  return *all;
}

Device& device(c10::DeviceIndex index) {
  check_device(index);
  return devices()[index];
}

size_t taken_by(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

// Frees what no queued work can use any more, and keeps it for reuse. With the device's lock held.
void sweep(Device& d) {
  for (auto it = d.freed.begin(); it != d.freed.end();) {
    bool unused = !it->second.graph || it->second.graph->expired();
    for (const Mark& point : it->second.users) {
      unused = unused && reached(point);
    }
    if (!unused) {
      ++it;
      continue;
    }
    const size_t taken = taken_by(it->second.size);
    if (taken <= kCached && d.cache.size() < kMostCached) {
      d.cache.emplace(taken, std::move(it->second.memory));
    }
    it = d.freed.erase(it);
  }
}

Block* find(std::map<char*, Block>& blocks, char* address) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) {
    return nullptr;
  }
  Block& block = std::prev(it)->second;
  return address < block.address + block.size ? &block : nullptr;
}

void release(void* address) {
  for (Device& d : devices()) {
    std::lock_guard<std::mutex> held(d.lock);
    auto it = d.blocks.find(static_cast<char*>(address));
    if (it == d.blocks.end()) {
      continue;
    }
    d.counters.allocated -= it->second.size;
    for (c10::Stream stream : it->second.streams) {
      it->second.users.push_back(end_of(stream));
    }
    d.freed.insert(d.blocks.extract(it));
    sweep(d);
    return;
  }
}

// Where the elements of a view lie in the host's memory. Throws unless they are all in one block of the device.
char* translate(Device& d, c10::DeviceIndex index, const View& view, size_t& bytes) {
  int64_t last = 0;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 0) {
      bytes = 0;
      return nullptr;
    }
    last += (view.sizes[i] - 1) * view.strides[i];
  }
  bytes = (last + 1) * c10::elementSize(view.dtype);
  char* begin = static_cast<char*>(view.data);
  std::lock_guard<std::mutex> held(d.lock);
  Block* block = find(d.blocks, begin);
  block = block ? block : find(d.freed, begin);
  TORCH_CHECK(
      block && begin + bytes <= block->address + block->size, "an illegal memory access was encountered: ", bytes,
      " bytes at ", view.data, " are not memory of sim:", int(index));
  return block->memory.get() + (begin - block->address);
}

at::Tensor on_host(Device& d, c10::DeviceIndex index, const View& view, size_t& bytes) {
  char* data = translate(d, index, view, bytes);
  at::Tensor t = at::from_blob(data, view.sizes, view.strides, at::TensorOptions(view.dtype));
  t = view.conj ? at::_conj(t) : t;
  return view.neg ? at::_neg_view(t) : t;
}

void run(c10::DeviceIndex index, const std::vector<View>& views, const Kernel& kernel) {
  Device& d = device(index);
  {
    std::lock_guard<std::mutex> held(d.lock);
    if (!d.error.empty()) {
      return;
    }
  }
  try {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    std::vector<at::Tensor> tensors;
    size_t most = 0;
    for (const View& view : views) {
      size_t bytes = 0;
      tensors.push_back(on_host(d, index, view, bytes));
      most = std::max(most, bytes);
    }
    kernel(tensors);
    if (most > kUnnoticed) {
      std::this_thread::sleep_for(std::chrono::duration<double>(most / kBytesPerSecond));
    }
  } catch (const std::exception& error) {
    const auto* own = dynamic_cast<const c10::Error*>(&error);
    std::lock_guard<std::mutex> held(d.lock);
    d.error = own ? own->what_without_backtrace() : error.what();
  }
}

struct Memory final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t size) override {
    const c10::Device place(kType, current_device());
    if (size == 0) {
      return {nullptr, nullptr, &release, place};
    }
    Device& d = device(place.index());
    std::lock_guard<std::mutex> held(d.lock);
    if (!d.space) {
      void* space = mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      TORCH_CHECK(space != MAP_FAILED, "sim: no address space for the device: ", std::strerror(errno));
      d.space = d.next = static_cast<char*>(space);
    }
    sweep(d);
    const size_t taken = taken_by(size);
    // a gap after every block, so that what reads beyond one is seen to
    TORCH_CHECK(d.next + taken + kAlignment <= d.space + kSpace, "sim: out of memory");
    Block block{d.next, size};
    ++d.counters.allocations;
    // as a caching allocator does: what is there is what an earlier tensor has left, the last one of that size
    if (auto last = d.cache.upper_bound(taken); last != d.cache.begin() && std::prev(last)->first == taken) {
      block.memory = std::move(std::prev(last)->second);
      d.cache.erase(std::prev(last));
    } else {
      block.memory.reset(static_cast<char*>(std::aligned_alloc(kAlignment, taken)));
      TORCH_CHECK(block.memory, "sim: out of memory: ", size, " bytes were asked for");
      std::memset(block.memory.get(), 0x21 + int(d.counters.allocations % 64), taken); // odd, and each time another
    }
    block.streams = {current_stream(place.index())};
    if (auto recording = recording_of(block.streams[0])) {
      block.graph = recording;
    }
    d.next += taken + kAlignment;
    d.counters.allocated += size;
    d.counters.peak = std::max(d.counters.peak, d.counters.allocated);
    void* address = block.address;
    d.blocks.emplace(block.address, std::move(block));
    return {address, address, &release, place};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }

  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "sim: memory is copied by copy_");
  }

  bool initialized() override {
    return true;
  }

  void emptyCache(c10::MempoolId_t) override {
    for (Device& d : devices()) {
      std::lock_guard<std::mutex> held(d.lock);
      d.cache.clear();
    }
  }

  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    record_stream(memory, stream);
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    const Counters now = counters(index);
    c10::CachingDeviceAllocator::DeviceStats stats;
    for (auto* bytes : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes, &stats.reserved_bytes}) {
      bytes->at(0).current = now.allocated; // 0: of all pools
      bytes->at(0).peak = now.peak;
    }
    stats.allocation.at(0).allocated = now.allocations;
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex) override {}

  void resetPeakStats(c10::DeviceIndex index) override {
    reset_peak(index);
  }
};

Memory memory;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &memory)

} // namespace

void hold_memory() {
  for (Device& d : devices()) {
    d.lock.lock();
  }
}

void let_go_of_memory() {
  for (Device& d : devices()) {
    d.lock.unlock();
  }
}

void throw_if_lost(c10::DeviceIndex index) {
  Device& d = device(index);
  std::lock_guard<std::mutex> held(d.lock);
  TORCH_CHECK(
      d.error.empty(), "sim error: ", d.error, "\nkernels run asynchronously: the call at fault may be an earlier one");
}

View::View(const at::Tensor& t)
    : data(const_cast<void*>(t.const_data_ptr())),
      sizes(t.sizes().vec()),
      strides(t.strides().vec()),
      dtype(t.scalar_type()),
      conj(t.is_conj()),
      neg(t.is_neg()) {}

void launch(c10::Stream stream, std::vector<View> views, Kernel kernel) {
  const c10::DeviceIndex index = stream.device_index();
  enqueue(stream, [index, views = std::move(views), kernel = std::move(kernel)] { run(index, views, kernel); });
}

c10::Allocator* allocator() {
  return &memory;
}

void record_stream(const c10::DataPtr& data, c10::Stream stream) {
  Device& d = device(data.device().index());
  std::lock_guard<std::mutex> held(d.lock);
  if (Block* block = find(d.blocks, static_cast<char*>(data.get()))) {
    block->streams.push_back(stream);
  }
}

Counters counters(c10::DeviceIndex index) {
  Device& d = device(index < 0 ? current_device() : index);
  std::lock_guard<std::mutex> held(d.lock);
  return d.counters;
}

void reset_peak(c10::DeviceIndex index) {
  Device& d = device(index < 0 ? current_device() : index);
  std::lock_guard<std::mutex> held(d.lock);
  d.counters.peak = d.counters.allocated;
}

} // namespace simdevice
