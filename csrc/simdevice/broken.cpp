// Operators with a kernel for the CPU that is right, and one for the simulated device that has one fault, as kernels
// for GPUs have them. `blend`, `scaled` and `forks` have none. reference_ops/broken/device.py says which check finds what.
#include "runtime.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>

namespace broken_device {
namespace {

using simdevice::View;

at::Tensor like(const at::Tensor& x) {
  return at::empty(x.sizes(), x.options());
}

// Twice x: what most operators here compute.
void double_into(const at::Tensor& out, const at::Tensor& x, c10::Stream stream) {
  simdevice::launch(stream, {View(out), View(x)}, [](const auto& t) { t[0].copy_(at::mul(t[1], 2)); });
}

c10::Stream stream_for(const at::Tensor& x) {
  return simdevice::current_stream(x.device().index());
}

at::Tensor doubled_cpu(const at::Tensor& x) {
  return like(x).copy_(at::mul(x, 2));
}

at::Tensor doubled(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  double_into(out, x, stream_for(x));
  return out;
}

at::Tensor blend_cpu(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(b.sizes() == a.sizes() && b.scalar_type() == a.scalar_type(), "blend: a and b must be alike");
  TORCH_CHECK(b.device() == a.device(), "blend: a is on ", a.device(), " and b on ", b.device());
  return like(a).copy_(at::add(at::mul(a, 2), b));
}

at::Tensor blend_unchecked(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(b.sizes() == a.sizes() && b.scalar_type() == a.scalar_type(), "blend: a and b must be alike");
  const c10::DeviceGuard guard(a.device());
  at::Tensor out = like(a);
  simdevice::launch(stream_for(a), {View(out), View(a), View(b)}, [](const auto& t) {
    t[0].copy_(at::add(at::mul(t[1], 2), t[2]));
  });
  return out;
}

at::Tensor blend(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(b.device() == a.device(), "blend: a is on ", a.device(), " and b on ", b.device());
  return blend_unchecked(a, b);
}

// Twice x, times a number that may be on the CPU, as torch's own operators take one.
at::Tensor scaled(const at::Tensor& x, const at::Tensor& factor) {
  TORCH_CHECK(factor.dim() == 0, "scaled: factor must have no dimension");
  TORCH_CHECK(factor.is_cpu() || factor.device() == x.device(), "scaled: x and factor are on different devices");
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  if (factor.is_cpu()) {
    const at::Scalar value = factor.item();
    simdevice::launch(stream_for(x), {View(out), View(x)}, [value](const auto& t) {
      t[0].copy_(at::mul(t[1], 2).mul_(value));
    });
  } else {
    simdevice::launch(stream_for(x), {View(out), View(x), View(factor)}, [](const auto& t) {
      t[0].copy_(at::mul(t[1], 2).mul_(t[2]));
    });
  }
  return out;
}

// Lets a number on the CPU pass as `scaled` does, and takes its address for one of the device.
at::Tensor number_on_cpu(const at::Tensor& x, const at::Tensor& factor) {
  TORCH_CHECK(factor.dim() == 0, "scaled: factor must have no dimension");
  TORCH_CHECK(factor.is_cpu() || factor.device() == x.device(), "scaled: x and factor are on different devices");
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  simdevice::launch(stream_for(x), {View(out), View(x), View(factor)}, [](const auto& t) {
    t[0].copy_(at::mul(t[1], 2).mul_(t[2]));
  });
  return out;
}

at::Tensor scaled_cpu(const at::Tensor& x, const at::Tensor& factor) {
  TORCH_CHECK(factor.dim() == 0, "scaled: factor must have no dimension");
  return like(x).copy_(at::mul(x, 2).mul_(factor));
}

at::Tensor coarse(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  simdevice::launch(stream_for(x), {View(out), View(x)}, [](const auto& t) {
    t[0].copy_(at::mul(t[1], 2.01)); // a constant that lost its digits
  });
  return out;
}

at::Tensor on_cpu(const at::Tensor& x) {
  return doubled(x).cpu();
}

at::Tensor on_current_device(const at::Tensor& x) {
  const at::Tensor out = doubled(x);
  // no index: the device that is current
  return at::empty(x.sizes(), x.options().device(c10::Device(simdevice::kType))).copy_(out);
}

at::Tensor no_guard(const at::Tensor& x) {
  at::Tensor out = like(x);
  double_into(out, x, simdevice::current_stream(-1));
  return out;
}

at::Tensor leaves_device(const at::Tensor& x) {
  simdevice::exchange_device(x.device().index());
  at::Tensor out = like(x);
  double_into(out, x, stream_for(x));
  return out;
}

at::Tensor default_stream(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  const c10::Stream wrong = simdevice::default_stream(x.device().index());
  for (const at::Tensor& t : {x, out}) {
    simdevice::record_stream(t.storage().data_ptr(), wrong); // so that only the order is wrong, and no address
  }
  double_into(out, x, wrong);
  return out;
}

at::Tensor reads_host(const at::Tensor& x) {
  const volatile char* data = static_cast<const char*>(x.const_data_ptr());
  return x.numel() && data[0] == 1 ? doubled(x) : doubled(x);
}

at::Tensor beyond_the_end(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  View too_long(x);
  too_long.strides.assign(x.dim(), 1 << 20); // the kernel's own idea of where rows are
  simdevice::launch(stream_for(x), {View(out), too_long}, [](const auto& t) { t[0].copy_(at::mul(t[1], 2)); });
  return out;
}

at::Tensor keeps_results(const at::Tensor& x) {
  static auto* kept = new std::vector<at::Tensor>();
  at::Tensor out = doubled(x);
  kept->push_back(like(x));
  return out;
}

// Memory that torch's at::empty does not see, and so does not fill when it is asked to.
at::Tensor last_unwritten_of_raw(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = at::empty({0}, x.options());
  out.set_(at::Storage(at::Storage::use_byte_size_t(), x.nbytes(), simdevice::allocator()->allocate(x.nbytes())), 0,
           x.sizes());
  const int64_t whole = x.numel() / 4 * 4;
  simdevice::launch(stream_for(x), {View(out), View(x)}, [whole](const auto& t) {
    t[0].view(-1).narrow(0, 0, whole).copy_(at::mul(t[1].reshape(-1).narrow(0, 0, whole), 2));
  });
  return out;
}

at::Tensor last_unwritten(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = like(x);
  const int64_t whole = x.numel() / 4 * 4; // blocks of four, and no tail
  simdevice::launch(stream_for(x), {View(out), View(x)}, [whole](const auto& t) {
    t[0].view(-1).narrow(0, 0, whole).copy_(at::mul(t[1].reshape(-1).narrow(0, 0, whole), 2));
  });
  return out;
}

// Looks for errors of the kernel that it has just queued.
at::Tensor waits_for_kernel(const at::Tensor& x) {
  at::Tensor out = doubled(x);
  simdevice::synchronize(stream_for(x));
  return out;
}

// A kernel of several blocks tells by a flag on the device whether another block has done the work of this call. The
// flag holds the number of the call, which the host counts.
at::Tensor counts_calls(const at::Tensor& x) {
  static auto* flags = new std::map<c10::DeviceIndex, at::Tensor>();
  static int64_t calls = 0;
  const c10::DeviceGuard guard(x.device());
  at::Tensor& flag = (*flags)[x.device().index()];
  if (!flag.defined()) {
    flag = at::zeros({}, x.options().dtype(at::kLong));
  }
  at::Tensor out = like(x);
  simdevice::launch(stream_for(x), {View(out), View(x), View(flag)}, [call = ++calls](const auto& t) {
    if (t[2].template item<int64_t>() != call) {
      t[0].copy_(at::mul(t[1], 2));
      t[2].fill_(call);
    }
  });
  return out;
}

// Twice x on a stream of its own, which waits for the current one, and is waited for: as it should be.
at::Tensor forks(const at::Tensor& x) {
  const c10::DeviceGuard guard(x.device());
  static const std::array<c10::Stream, simdevice::kDevices> sides = {
      simdevice::new_stream(0), simdevice::new_stream(1)};
  const c10::Stream stream = stream_for(x), side = sides[x.device().index()];
  at::Tensor out = like(x);
  simdevice::wait_for(side, simdevice::mark(stream));
  double_into(out, x, side);
  simdevice::wait_for(stream, simdevice::mark(side));
  return out;
}

at::Tensor total_cpu(const at::Tensor& x) {
  return at::empty({}, x.options()).copy_(x.sum());
}

// Adds in the order in which threads happen to arrive, as atomics do.
at::Tensor any_order(const at::Tensor& x) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "any_order: x must be float32, got ", x.scalar_type());
  const c10::DeviceGuard guard(x.device());
  at::Tensor out = at::empty({}, x.options());
  simdevice::launch(stream_for(x), {View(out), View(x)}, [](const auto& t) {
    const at::Tensor terms = t[1].contiguous();
    std::vector<int64_t> order(terms.numel());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(std::random_device()()));
    float sum = 0;
    for (int64_t i : order) {
      sum += terms.template const_data_ptr<float>()[i];
    }
    t[0].fill_(sum);
  });
  return out;
}

// Name, and its kernel for the device.
const std::pair<const char*, at::Tensor (*)(const at::Tensor&)> kDoubled[] = {
    {"coarse", coarse},
    {"on_cpu", on_cpu},
    {"on_current_device", on_current_device},
    {"no_guard", no_guard},
    {"leaves_device", leaves_device},
    {"default_stream", default_stream},
    {"reads_host", reads_host},
    {"beyond_the_end", beyond_the_end},
    {"keeps_results", keeps_results},
    {"last_unwritten", last_unwritten},
    {"last_unwritten_of_raw", last_unwritten_of_raw},
    {"waits_for_kernel", waits_for_kernel},
    {"counts_calls", counts_calls},
    {"forks", forks},
};

} // namespace

TORCH_LIBRARY(broken_device, m) {
  m.def("blend(Tensor a, Tensor b) -> Tensor");
  m.def("accepts_mixed(Tensor a, Tensor b) -> Tensor");
  m.def("scaled(Tensor x, Tensor factor) -> Tensor");
  m.def("number_on_cpu(Tensor x, Tensor factor) -> Tensor");
  m.def("any_order(Tensor x) -> Tensor");
  m.def("no_kernel(Tensor x) -> Tensor");
  for (const auto& [name, kernel] : kDoubled) {
    m.def((std::string(name) + "(Tensor x) -> Tensor").c_str());
  }
}

TORCH_LIBRARY_IMPL(broken_device, CPU, m) {
  m.impl("blend", blend_cpu);
  m.impl("accepts_mixed", blend_cpu);
  m.impl("scaled", scaled_cpu);
  m.impl("number_on_cpu", scaled_cpu);
  m.impl("any_order", total_cpu);
  m.impl("no_kernel", doubled_cpu);
  for (const auto& [name, kernel] : kDoubled) {
    m.impl(name, doubled_cpu);
  }
}

TORCH_LIBRARY_IMPL(broken_device, PrivateUse1, m) {
  m.impl("blend", blend);
  m.impl("accepts_mixed", blend_unchecked);
  m.impl("scaled", scaled);
  m.impl("number_on_cpu", number_on_cpu);
  m.impl("any_order", any_order);
  for (const auto& [name, kernel] : kDoubled) {
    m.impl(name, kernel);
  }
}

} // namespace broken_device
