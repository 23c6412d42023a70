// Operators of torch's that the device has no kernel for run on the CPU: on copies, for which the host waits, or where
// the stream is captured into a graph, on the device's memory when the graph is replayed.
#include "runtime.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/enum_tag.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace simdevice {
namespace {

using Stack = torch::jit::Stack;
using Change = std::function<at::Tensor(const at::Tensor&)>;

// Positions may be on the CPU, whatever they index; numbers as well.
bool may_mix(const std::string& name) {
  return name == "aten::index" || name == "aten::index_put" || name == "aten::index_put_" ||
      name == "aten::_index_put_impl_";
}

// A value with its tensors changed, in their order, and devices replaced.
c10::IValue changed(const c10::IValue& value, const Change& change, c10::Device place) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? change(value.toTensor()) : value;
  }
  if (value.isDevice()) {
    return place;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& t : value.toTensorVector()) {
      out.push_back(t.defined() ? change(t) : t);
    }
    return out;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const std::optional<at::Tensor>& t : value.toOptionalTensorVector()) {
      out.push_back(t && t->defined() ? std::optional(change(*t)) : t);
    }
    return out;
  }
  return value;
}

Stack all_changed(c10::ArrayRef<c10::IValue> values, const Change& change, c10::Device place) {
  Stack out;
  for (const c10::IValue& value : values) {
    out.push_back(changed(value, change, place));
  }
  return out;
}

at::Tensor without_memory(const at::Tensor& t) {
  at::Tensor out = at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kMeta));
  out._set_conj(t.is_conj());
  out._set_neg(t.is_neg());
  return out;
}

void require_one_device(const c10::FunctionSchema& schema, const Stack& stack) {
  std::optional<c10::Device> place;
  const Change look = [&](const at::Tensor& t) {
    if (t.dim() != 0 || !t.is_cpu()) {
      TORCH_CHECK(
          !place || *place == t.device(),
          "Expected all tensors to be on the same device, but found at least two devices, ", *place, " and ", t.device(),
          "! (", schema.name(), ")");
      place = t.device();
    }
    return t;
  };
  all_changed(torch::jit::last(stack, schema.arguments().size()), look, at::kCPU);
}

// The argument that a return of an operator is, such as `out`; none where the return is new.
std::optional<size_t> argument_of(const c10::FunctionSchema& schema, const c10::Argument& returned) {
  if (!returned.alias_info() || !returned.alias_info()->isWrite()) {
    return std::nullopt;
  }
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* info = schema.arguments()[i].alias_info();
    if (info && info->beforeSets() == returned.alias_info()->beforeSets()) {
      return i;
    }
  }
  return std::nullopt;
}

// Queue a call. What comes out has the shape that the operator's kernel for meta tensors says.
void record(const c10::OperatorHandle& op, Stack* stack, c10::Stream stream) {
  const c10::FunctionSchema& schema = op.schema();
  const c10::Device place = stream.device();
  if (op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output)) {
    forbid_while_capturing(stream, "a size or a number that depends on values is asked for");
  }
  const Stack given = [&] {
    const auto arguments = torch::jit::last(*stack, schema.arguments().size());
    return Stack(arguments.begin(), arguments.end());
  }();
  const Change keep_no_memory = [&](const at::Tensor& t) {
    // a number of the host's: its value now
    return t.device() == place ? without_memory(t) : t.clone();
  };
  const Stack late = all_changed(given, keep_no_memory, at::kCPU);

  Stack made = all_changed(given, keep_no_memory, at::kMeta);
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  op.callBoxed(&made);
  TORCH_INTERNAL_ASSERT(made.size() == schema.returns().size());

  std::vector<View> outs;
  std::vector<size_t> fresh;
  for (size_t i = 0; i < made.size(); ++i) {
    TORCH_CHECK(made[i].isTensor(), "sim: ", schema.name(), " cannot be captured: it returns more than tensors");
    const at::Tensor shape = made[i].toTensor();
    if (const auto argument = argument_of(schema, schema.returns()[i])) {
      made[i] = given[*argument];
      if (made[i].toTensor().sizes() != shape.sizes()) { // an `out` that is to be given its size
        made[i].toTensor().resize_(shape.sizes());
      }
      continue;
    }
    TORCH_CHECK(!schema.returns()[i].alias_info(), "sim: ", schema.name(), " cannot be captured: it returns a view");
    const at::Tensor out = at::empty_strided(shape.sizes(), shape.strides(), shape.options().device(place));
    outs.emplace_back(out);
    fresh.push_back(i);
    made[i] = out;
  }
  std::vector<View> views;
  const Change look = [&](const at::Tensor& t) {
    if (t.device() == place) {
      views.emplace_back(t);
    }
    return t;
  };
  all_changed(given, look, at::kCPU);
  const size_t known = views.size();
  views.insert(views.end(), outs.begin(), outs.end());
  launch(stream, std::move(views), [op, late, known, fresh](const auto& tensors) {
    auto next = tensors.begin();
    Stack values = all_changed(late, [&](const at::Tensor& t) { return t.is_meta() ? *next++ : t; }, at::kCPU);
    op.callBoxed(&values);
    for (size_t i = 0; i < fresh.size(); ++i) {
      tensors[known + i].copy_(values[fresh[i]].toTensor());
    }
  });
  torch::jit::drop(*stack, given.size());
  stack->insert(stack->end(), made.begin(), made.end());
}

void on_cpu(const c10::OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  // Others' operators are not made to work where their authors have no kernel.
  TORCH_CHECK_NOT_IMPLEMENTED(
      name.rfind("aten::", 0) == 0, "Could not run '", name, "' with arguments from the 'sim' backend: it has no kernel.");
  if (!may_mix(name)) {
    require_one_device(schema, *stack);
  }
  std::optional<c10::Device> place;
  const Change look = [&](const at::Tensor& t) {
    place = place || t.device().type() != kType ? place : t.device();
    return t;
  };
  all_changed(torch::jit::last(*stack, schema.arguments().size()), look, at::kCPU);
  const c10::Stream stream = current_stream(place ? place->index() : -1);
  if (capturing(stream)) {
    const c10::DeviceGuard guard(stream.device());
    record(op, stack, stream);
  } else {
    at::native::cpu_fallback(op, stack);
  }
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

} // namespace
} // namespace simdevice
