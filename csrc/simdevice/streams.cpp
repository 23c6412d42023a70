#include "internal.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
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

constexpr int kStreams = 33; // of a device: the default one, and a pool

struct Queue {
  std::mutex lock;
  std::shared_ptr<Recording> recording; // while the stream is captured
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  uint64_t queued = 0, done = 0;
  bool running = false; // whether a thread serves the queue in this process
};

struct Streams {
  std::array<Queue, kStreams> queues;
  std::atomic<int> pooled{0};
};

// Never destroyed: threads may still wait on the queues when the process ends.
std::array<Streams, kDevices>& all_streams() {
  static auto* all = new std::array<Streams, kDevices>();
  return *all;
}

Queue& queue(c10::Stream stream) {
  check_device(stream.device_index());
  return all_streams()[stream.device_index()].queues.at(stream.id());
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
  for (auto& streams : all_streams()) {
    for (auto& q : streams.queues) {
      std::unique_lock<std::mutex> held(q.lock);
      q.changed.wait(held, [&] { return q.done == q.queued; });
    }
  }
  hold_memory(); // first, as everywhere
  for (auto& streams : all_streams()) {
    for (auto& q : streams.queues) {
      q.lock.lock();
    }
  }
}

void after_fork(bool child) {
  for (auto& streams : all_streams()) {
    for (auto& q : streams.queues) {
      if (child) {
        q.running = false;
        new (&q.changed) std::condition_variable(); // the old one counts waiters that are not there
      }
      q.lock.unlock();
    }
  }
  let_go_of_memory();
}

void wait(const Mark& point) {
  Queue& q = queue(point.stream);
  std::unique_lock<std::mutex> held(q.lock);
  q.changed.wait(held, [&] { return q.done >= point.ticket; });
}

} // namespace

void check_device(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < kDevices, "sim: there is no device ", int(index));
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

c10::DeviceIndex current_device() {
  return t_device;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex was = t_device;
  if (index >= 0) {
    check_device(index);
    t_device = index;
  }
  return was;
}

c10::Stream current_stream(c10::DeviceIndex index) {
  index = index < 0 ? t_device : index;
  check_device(index);
  return stream_of(index, t_streams[index]);
}

c10::Stream default_stream(c10::DeviceIndex index) {
  return stream_of(index < 0 ? t_device : index, 0);
}

c10::Stream new_stream(c10::DeviceIndex index) {
  index = index < 0 ? t_device : index;
  check_device(index);
  return stream_of(index, 1 + all_streams()[index].pooled++ % (kStreams - 1));
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

} // namespace simdevice
