#include "runtime.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace simdevice {

struct Recording {
  explicit Recording(c10::Stream stream) : origin(stream) {}

  const c10::Stream origin; // on which the capture began
  std::mutex lock; // of all below
  // In the order in which the host asked for it, which is one in which nothing comes before what it waits for.
  std::vector<std::function<void()>> work;
  std::map<c10::StreamId, size_t> apart; // work of other streams that the first one does not wait for yet
  std::vector<c10::Stream> joined;
  std::string error;

  void add(c10::Stream stream, std::function<void()> item) {
    std::lock_guard<std::mutex> held(lock);
    TORCH_CHECK(error.empty(), "sim error: the capture has failed already: ", error);
    work.push_back(std::move(item));
    if (stream != origin) {
      apart[stream.id()] = work.size();
    }
  }

  void wait_for(c10::Stream stream, const Mark& point) {
    std::lock_guard<std::mutex> held(lock);
    auto found = apart.find(point.stream.id());
    if (found != apart.end() && found->second <= point.ticket) {
      apart.erase(found);
      if (stream != origin) {
        apart[stream.id()] = work.size();
      }
    }
  }

  [[noreturn]] void refuse(const char* what) {
    std::lock_guard<std::mutex> held(lock);
    error = error.empty() ? what : error;
    TORCH_CHECK(false, "sim error: operation not permitted while a stream is captured: ", what);
  }
};

namespace {

// Addresses of a device are handed out once and never again, as far as this goes.
constexpr size_t kSpace = size_t{1} << 40;
constexpr size_t kAlignment = 512; // as CUDA's allocator aligns
constexpr int kStreams = 33; // of a device: the default one, and a pool
constexpr double kBytesPerSecond = 5e8; // slow enough that work is still under way when the host goes on
constexpr size_t kCached = size_t{1} << 20, kMostCached = 256; // bytes of a block that is kept for reuse, and blocks
constexpr size_t kUnnoticed = size_t{1} << 20; // less memory than this takes no time

// ------------------------------------------------------------------------- streams

struct Queue {
  std::mutex lock;
  std::shared_ptr<Recording> recording; // while the stream is captured
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  uint64_t queued = 0, done = 0;
  bool running = false; // whether a thread serves the queue in this process
};

// ------------------------------------------------------------------------- memory

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
  std::array<Queue, kStreams> queues;
  int pooled = 0;
  std::mutex lock; // of all below
  std::string error; // what a kernel did wrong; the device is of no use any more
  char *space = nullptr, *next = nullptr;
  std::map<char*, Block> blocks;
  std::map<char*, Block> freed; // which queued work may still use
  std::multimap<size_t, HostMemory> cache; // what was in blocks that are not used any more
  Counters counters;
};

// Never destroyed: threads may still wait on the queues when the process ends.
std::array<Device, kDevices>& devices() {
  static auto* all = new std::array<Device, kDevices>();
  return *all;
}

Device& device(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < kDevices, "sim: there is no device ", int(index));
  return devices()[index];
}

Queue& queue(c10::Stream stream) {
  return device(stream.device_index()).queues.at(stream.id());
}

thread_local c10::DeviceIndex t_device = 0;
thread_local std::array<c10::StreamId, kDevices> t_streams{};

c10::Stream stream_of(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, index), id);
}

void serve(Queue& q) {
  std::unique_lock<std::mutex> held(q.lock);
  for (;;) {
    q.changed.wait(held, [&] { return !q.work.empty(); });
    auto work = std::move(q.work.front());
    q.work.pop_front();
    held.unlock();
    work();
    work = nullptr;
    held.lock();
    ++q.done;
    q.changed.notify_all();
  }
}

// A forked child has the queues and none of the threads, so that these must be at rest when a process forks.
void before_fork() {
  for (auto& d : devices()) {
    for (auto& q : d.queues) {
      std::unique_lock<std::mutex> held(q.lock);
      q.changed.wait(held, [&] { return q.done == q.queued; });
    }
  }
  for (auto& d : devices()) {
    d.lock.lock(); // first, as everywhere
    for (auto& q : d.queues) {
      q.lock.lock();
    }
  }
}

void after_fork(bool child) {
  for (auto& d : devices()) {
    for (auto& q : d.queues) {
      if (child) {
        q.running = false;
        new (&q.changed) std::condition_variable(); // the old one counts waiters that are not there
      }
      q.lock.unlock();
    }
    d.lock.unlock();
  }
}

void enqueue(c10::Stream stream, std::function<void()> work) {
  static const int registered = pthread_atfork(before_fork, [] { after_fork(false); }, [] { after_fork(true); });
  (void)registered;
  Queue& q = queue(stream);
  std::lock_guard<std::mutex> held(q.lock);
  if (q.recording) {
    q.recording->add(stream, std::move(work));
    return;
  }
  if (!q.running) {
    std::thread(serve, std::ref(q)).detach(); // throws where no thread can be had
    q.running = true;
  }
  q.work.push_back(std::move(work));
  ++q.queued;
  q.changed.notify_all();
}

void wait(const Mark& point) {
  Queue& q = queue(point.stream);
  std::unique_lock<std::mutex> held(q.lock);
  q.changed.wait(held, [&] { return q.done >= point.ticket; });
}

Mark end_of(c10::Stream stream) {
  Queue& q = queue(stream);
  std::lock_guard<std::mutex> held(q.lock);
  return {stream, q.queued};
}

bool reached(const Mark& point) {
  Queue& q = queue(point.stream);
  std::lock_guard<std::mutex> held(q.lock);
  return q.done >= point.ticket;
}

std::shared_ptr<Recording> recording_of(c10::Stream stream) {
  Queue& q = queue(stream);
  std::lock_guard<std::mutex> held(q.lock);
  return q.recording;
}

void throw_if_lost(c10::DeviceIndex index) {
  Device& d = device(index);
  std::lock_guard<std::mutex> held(d.lock);
  TORCH_CHECK(
      d.error.empty(), "sim error: ", d.error, "\nkernels run asynchronously: the call at fault may be an earlier one");
}

// ------------------------------------------------------------------------- memory

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

c10::DeviceIndex current_device() {
  return t_device;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex was = t_device;
  if (index >= 0) {
    device(index); // must be there
    t_device = index;
  }
  return was;
}

c10::Stream current_stream(c10::DeviceIndex index) {
  index = index < 0 ? t_device : index;
  device(index);
  return stream_of(index, t_streams[index]);
}

c10::Stream default_stream(c10::DeviceIndex index) {
  return stream_of(index < 0 ? t_device : index, 0);
}

c10::Stream new_stream(c10::DeviceIndex index) {
  index = index < 0 ? t_device : index;
  Device& d = device(index);
  std::lock_guard<std::mutex> held(d.lock);
  return stream_of(index, 1 + d.pooled++ % (kStreams - 1));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::Stream was = current_stream(stream.device_index());
  t_streams[stream.device_index()] = stream.id();
  return was;
}

Mark mark(c10::Stream stream) {
  auto recording = recording_of(stream);
  if (!recording) {
    return end_of(stream);
  }
  std::lock_guard<std::mutex> held(recording->lock);
  return {stream, recording->work.size(), recording};
}

bool passed(const Mark& point) {
  if (point.recording) {
    point.recording->refuse("the host asks how far it has come");
  }
  return reached(point);
}

bool idle(c10::Stream stream) {
  return passed(mark(stream));
}

void wait_for(c10::Stream stream, const Mark& point) {
  if (stream == point.stream) {
    return;
  }
  auto own = recording_of(stream);
  if (point.recording) { // the stream is captured from here on
    if (!own) {
      Queue& q = queue(stream);
      std::lock_guard<std::mutex> held(q.lock);
      q.recording = own = point.recording;
      own->joined.push_back(stream);
    }
    TORCH_CHECK(own == point.recording, "sim error: a stream of one capture cannot wait for a stream of another");
    own->wait_for(stream, point);
  } else if (own) {
    own->refuse("it is to wait for work of a stream that is not captured");
  } else if (!reached(point)) {
    enqueue(stream, [point] { wait(point); });
  }
}

void synchronize(const Mark& point) {
  if (point.recording) {
    point.recording->refuse("the host waits for it");
  }
  wait(point);
  throw_if_lost(point.stream.device_index());
}

void synchronize(c10::Stream stream) {
  synchronize(mark(stream));
}

void synchronize_device(c10::DeviceIndex index) {
  index = index < 0 ? t_device : index;
  for (int id = 0; id < kStreams; ++id) {
    forbid_while_capturing(stream_of(index, id), "the host waits for the device");
    wait(end_of(stream_of(index, id)));
  }
  throw_if_lost(index);
}

void capture_begin() {
  const c10::Stream stream = current_stream(-1);
  TORCH_CHECK(stream.id() != 0, "sim error: the default stream cannot be captured");
  Queue& q = queue(stream);
  std::lock_guard<std::mutex> held(q.lock);
  TORCH_CHECK(!q.recording, "sim error: the stream is captured already");
  q.recording = std::make_shared<Recording>(stream);
}

std::shared_ptr<Recording> capture_end() {
  const c10::Stream stream = current_stream(-1);
  auto recording = recording_of(stream);
  TORCH_CHECK(recording && recording->origin == stream, "sim error: no capture began on the current stream");
  auto streams = recording->joined;
  streams.push_back(stream);
  for (c10::Stream captured : streams) {
    Queue& q = queue(captured);
    std::lock_guard<std::mutex> held(q.lock);
    q.recording = nullptr;
  }
  TORCH_CHECK(recording->error.empty(), "sim error: the capture has failed: ", recording->error);
  TORCH_CHECK(recording->apart.empty(), "sim error: the captured stream does not wait for work of another stream");
  return recording;
}

void replay(const std::shared_ptr<Recording>& recording) {
  enqueue(current_stream(recording->origin.device_index()), [recording] {
    for (const auto& item : recording->work) {
      item();
    }
  });
}

bool capturing(c10::Stream stream) {
  return recording_of(stream) != nullptr;
}

void forbid_while_capturing(c10::Stream stream, const char* what) {
  if (auto recording = recording_of(stream)) {
    recording->refuse(what);
  }
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
  Device& d = device(index < 0 ? t_device : index);
  std::lock_guard<std::mutex> held(d.lock);
  return d.counters;
}

void reset_peak(c10::DeviceIndex index) {
  Device& d = device(index < 0 ? t_device : index);
  std::lock_guard<std::mutex> held(d.lock);
  d.counters.peak = d.counters.allocated;
}

} // namespace simdevice
