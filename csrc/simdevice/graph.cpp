// Graphs, as torch.accelerator.Graph has them where torch knows of graphs of any backend (2.13).
#include "runtime.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>

namespace simdevice {
namespace {

struct Graph final : at::GraphImplInterface {
  explicit Graph(const at::GraphImplArgs&) {}

  void capture_begin(c10::MempoolId_t, at::GraphCaptureMode) override {
    simdevice::capture_begin();
  }
  void capture_end() override {
    recorded = simdevice::capture_end();
  }
  void instantiate() override {}
  void replay() override {
    TORCH_CHECK(recorded, "sim: nothing was captured");
    simdevice::replay(recorded);
  }
  void reset() override {
    recorded = nullptr;
  }
  c10::MempoolId_t pool() const override {
    return {0, 0};
  }
  void enable_debug_mode() override {}
  void debug_dump(const std::string&) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "sim: graphs are not written to files");
  }

  std::shared_ptr<Recording> recorded;
};

} // namespace
} // namespace simdevice

namespace at {
// by the name that the device has once it is known to torch
REGISTER_GRAPH_IMPL(SIM, simdevice::Graph)
} // namespace at
#endif
