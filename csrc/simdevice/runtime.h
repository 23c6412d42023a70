// A simulated accelerator: two devices with memory and streams of their own, on a machine that has none.
//
// What it shares with a GPU is what custom operators get wrong on one. An address of the device is no address of the
// host: reading it there ends the process. Kernels are queued on a stream and run later, in another thread; streams do
// not wait for each other. A kernel may touch memory of the device that its stream belongs to, and nothing else; what
// it does wrong is told by the next call that waits, and the device is lost from then on.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <vector>

namespace simdevice {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;

c10::DeviceIndex current_device();
c10::DeviceIndex exchange_device(c10::DeviceIndex index); // -1 changes nothing

c10::Stream current_stream(c10::DeviceIndex index); // -1: of the current device
c10::Stream default_stream(c10::DeviceIndex index);
c10::Stream new_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(c10::Stream stream); // as the current one of its device

// Wait for queued work. They throw what a kernel did wrong, now or earlier.
void synchronize(c10::Stream stream);
void synchronize_device(c10::DeviceIndex index);
bool idle(c10::Stream stream);

// Work of streams that is recorded, and not done until it is replayed.
struct Recording;

// A point in a stream's queue, or in a recording.
struct Mark {
  c10::Stream stream;
  uint64_t ticket;
  std::shared_ptr<Recording> recording = nullptr;
};
Mark mark(c10::Stream stream);
bool passed(const Mark& point);
void wait_for(c10::Stream stream, const Mark& point); // what is queued later on the stream waits; the host does not
void synchronize(const Mark& point);

// Memory that a kernel works on: an address, and how the elements lie there. It holds nothing alive.
struct View {
  explicit View(const at::Tensor& t);
  void* data;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype;
  bool conj, neg;
};

// Queue a kernel. It is given tensors of the host's that look at the device's memory, one for each view.
using Kernel = std::function<void(const std::vector<at::Tensor>&)>;
void launch(c10::Stream stream, std::vector<View> views, Kernel kernel);

// Graphs. From the one call to the other, what is queued on the current stream, and on streams that wait for it, is
// recorded. Waiting for such a stream and copying from or to the host are errors, after which nothing is recorded.
void capture_begin();
std::shared_ptr<Recording> capture_end();
void replay(const std::shared_ptr<Recording>& recording); // on the current stream
bool capturing(c10::Stream stream);
void forbid_while_capturing(c10::Stream stream, const char* what);

// The memory of the devices. What is freed stays valid for the work that is queued on the streams that know of it, and
// what a graph's capture allocates, for as long as there is the graph.
c10::Allocator* allocator();
void record_stream(const c10::DataPtr& memory, c10::Stream stream);

struct Counters {
  int64_t allocated = 0, peak = 0, allocations = 0;
};
Counters counters(c10::DeviceIndex index);
void reset_peak(c10::DeviceIndex index);

} // namespace simdevice
