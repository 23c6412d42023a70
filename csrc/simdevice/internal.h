// What the streams and the memory of the devices know of each other.
//
// Locks are taken in one order: a device's memory, then a stream's queue, then a recording.
#pragma once

#include "runtime.h"

namespace simdevice {

void check_device(c10::DeviceIndex index); // throws where there is none

// Streams.
void enqueue(c10::Stream stream, std::function<void()> work); // or record it, while the stream is captured
Mark end_of(c10::Stream stream); // of its queue, captured or not
bool reached(const Mark& point);
std::shared_ptr<Recording> recording_of(c10::Stream stream); // none where it is not captured

// Memory.
void throw_if_lost(c10::DeviceIndex index);
void hold_memory(); // while the process forks
void let_go_of_memory();

} // namespace simdevice
