// TORCH_LIBRARY, TORCH_LIBRARY_FRAGMENT and TORCH_LIBRARY_IMPL with names that are known only at run time.
//
// The macros make a torch::Library of a kind and a namespace, and hand it to the block below them. What is done here is
// the same, but what torch refuses comes back as text: in a macro it ends the process that loads the library.
#include <torch/library.h>

#include <memory>
#include <string>
#include <vector>

namespace {

std::vector<std::unique_ptr<torch::Library>> made;
std::string refusal;

at::Tensor kernel(const at::Tensor& x) {
  return x;
}

} // namespace

// kind: 0 DEF, 1 IMPL, 2 FRAGMENT. An empty schema defines nothing, an empty name registers no kernel.
// Returns nullptr, or torch's error, which lasts until the next call.
extern "C" const char* register_op(int kind, const char* ns, const char* schema, const char* name) {
  try {
    auto library = std::make_unique<torch::Library>(
        static_cast<torch::Library::Kind>(kind), ns, std::nullopt, __FILE__, __LINE__);
    if (*schema != 0) {
      library->def(schema);
    }
    if (*name != 0) {
      library->impl(name, c10::DispatchKey::CPU, &kernel);
    }
    made.push_back(std::move(library));
    return nullptr;
  } catch (const std::exception& error) {
    refusal = error.what();
    return refusal.c_str();
  }
}

extern "C" void forget_ops() {
  made.clear();
}
