// Attention of tensors in files, for comparisons with other bindings of the
// library (python/tests/library_test.py). Reads cases from the standard input,
// one a line:
//
//   IN OUT RESIDUAL LAYERS DECAY PATTERN MAX_DISTANCE [NUMBER...]
//
// IN has the tensors of `Inputs` in order; OUT gets context, own and other
// scores, and the gradients of all inputs that are defined. A tensor is its
// number of dimensions (-1: undefined), its sizes, all int64, and its elements,
// float32. PATTERN is all, causal, window BEFORE AFTER, matrix, documents or
// keys; or a side of ETC with masks: long RADIUS, causal-long RADIUS, global
// RADIUS.
#include <torch/autograd.h>
#include <torch/types.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/softmax_pattern.h"
#include "attention/sparse_attention.h"

namespace etc {
namespace {

struct Inputs {
  torch::Tensor query, own_key, own_value, other_key, other_value;
  torch::Tensor embedding, bias, own_gate, other_gate;
  torch::Tensor own_previous, other_previous;
  // Tensors of the pattern, as numbers.
  torch::Tensor first, second;
  torch::Tensor context_gradient, own_gradient, other_gradient;
};

torch::Tensor Read(std::istream& file) {
  int64_t dims = 0;
  file.read(reinterpret_cast<char*>(&dims), sizeof(dims));
  TORCH_CHECK(file && dims <= 8, "the file of inputs ends early");
  if (dims < 0) {
    return {};
  }
  std::vector<int64_t> sizes(static_cast<size_t>(dims));
  file.read(reinterpret_cast<char*>(sizes.data()),
            static_cast<std::streamsize>(sizes.size() * sizeof(int64_t)));
  torch::Tensor tensor = torch::empty(sizes);
  file.read(static_cast<char*>(tensor.data_ptr()),
            static_cast<std::streamsize>(tensor.nbytes()));
  TORCH_CHECK(static_cast<bool>(file), "the file of inputs ends early");
  return tensor;
}

void Write(const torch::Tensor& given, std::ostream& file) {
  const int64_t dims = given.defined() ? given.dim() : -1;
  file.write(reinterpret_cast<const char*>(&dims), sizeof(dims));
  if (!given.defined()) {
    return;
  }
  const torch::Tensor tensor = given.detach().contiguous();
  file.write(reinterpret_cast<const char*>(tensor.sizes().data()),
             static_cast<std::streamsize>(tensor.dim() * 8));
  file.write(static_cast<const char*>(tensor.data_ptr()),
             static_cast<std::streamsize>(tensor.nbytes()));
}

Inputs ReadInputs(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Inputs inputs;
  for (torch::Tensor* tensor :
       {&inputs.query, &inputs.own_key, &inputs.own_value, &inputs.other_key,
        &inputs.other_value, &inputs.embedding, &inputs.bias, &inputs.own_gate,
        &inputs.other_gate, &inputs.own_previous, &inputs.other_previous,
        &inputs.first, &inputs.second, &inputs.context_gradient,
        &inputs.own_gradient, &inputs.other_gradient}) {
    *tensor = Read(file);
  }
  return inputs;
}

torch::Tensor AsMask(const torch::Tensor& numbers) {
  return numbers.defined() ? numbers.ne(0) : numbers;
}

SoftmaxPattern EtcSide(const Inputs& inputs, const std::string& name,
                       int64_t max_distance, int64_t radius) {
  const bool is_long = name != "global";
  const int64_t own = inputs.own_key.size(2);
  const int64_t other = inputs.other_key.size(2);
  AttentionInputs visible = AttentionInputs::Padded(
      AsMask(inputs.first), AsMask(inputs.second), max_distance);
  if (name == "causal-long") {
    visible = visible.Causal();
  }
  return visible.Softmax(is_long ? QuerySide::kLong : QuerySide::kGlobal,
                         inputs.query.size(0), is_long ? own : other,
                         is_long ? other : own, radius);
}

SoftmaxPattern PatternNamed(const Inputs& inputs, const std::string& name,
                            int64_t max_distance,
                            const std::vector<int64_t>& numbers) {
  const KeyPatternOptions options = {
      .queries = inputs.query.size(2),
      .keys = inputs.own_key.size(2) + inputs.other_key.size(2),
      .batch = inputs.query.size(0),
      .max_distance = max_distance};
  if (name == "all") {
    return AllKeysPattern(options);
  }
  if (name == "causal") {
    return CausalPattern(options);
  }
  if (name == "window") {
    return WindowPattern(options,
                         {.before = numbers.at(0), .after = numbers.at(1)});
  }
  if (name == "matrix") {
    return PatternFromMask(AsMask(inputs.first), options);
  }
  if (name == "keys") {
    return OnlyKeys(AllKeysPattern(options), AsMask(inputs.first));
  }
  if (name == "documents") {
    return OnlyDocuments(AllKeysPattern(options),
                         inputs.first.to(torch::kInt64),
                         inputs.second.to(torch::kInt64));
  }
  return EtcSide(inputs, name, max_distance, numbers.at(0));
}

void Run(const std::vector<std::string>& arguments) {
  TORCH_CHECK(arguments.size() >= 7, "too few arguments");
  Inputs inputs = ReadInputs(arguments[0]);
  std::vector<torch::Tensor> leaves;
  for (torch::Tensor* tensor :
       {&inputs.query, &inputs.own_key, &inputs.own_value, &inputs.other_key,
        &inputs.other_value, &inputs.embedding, &inputs.bias, &inputs.own_gate,
        &inputs.other_gate, &inputs.own_previous, &inputs.other_previous}) {
    if (tensor->defined()) {
      tensor->requires_grad_(true);
      leaves.push_back(*tensor);
    }
  }
  std::vector<int64_t> numbers;
  for (size_t i = 7; i < arguments.size(); ++i) {
    numbers.push_back(std::stoll(arguments[i]));
  }
  SparseAttentionInput input = {
      .operands = {.query = inputs.query,
                   .own_key = inputs.own_key,
                   .own_value = inputs.own_value,
                   .other_key = inputs.other_key,
                   .other_value = inputs.other_value,
                   .relative = {.embedding = inputs.embedding,
                                .bias = inputs.bias}},
      .pattern =
          PatternNamed(inputs, arguments[5], std::stoll(arguments[6]), numbers),
      .residual = {.mode = ResidualAttentionFromName(arguments[2]),
                   .decay = std::stod(arguments[4])},
      .previous = {.own = inputs.own_previous,
                   .other = inputs.other_previous,
                   .layers = std::stoll(arguments[3])},
      .gates = {.own = inputs.own_gate, .other = inputs.other_gate}};
  const SparseAttentionOutput output =
      SparseAttention(input, AttentionImplementation::kKernel);
  std::vector<torch::Tensor> outputs = {output.context};
  std::vector<torch::Tensor> gradients = {inputs.context_gradient};
  if (output.scores.defined()) {
    outputs.insert(outputs.end(), {*output.scores.own, *output.scores.other});
    gradients.insert(gradients.end(),
                     {inputs.own_gradient, inputs.other_gradient});
  }
  const std::vector<torch::Tensor> of_leaves =
      torch::autograd::grad(outputs, leaves, gradients);
  std::ofstream file(arguments[1], std::ios::binary);
  outputs.resize(3);
  for (const torch::Tensor& tensor : outputs) {
    Write(tensor, file);
  }
  for (const torch::Tensor& tensor : of_leaves) {
    Write(tensor, file);
  }
  TORCH_CHECK(file.flush(), arguments[1], " cannot be written");
}

void RunAll(std::istream& cases) {
  std::string line;
  while (std::getline(cases, line)) {
    std::istringstream words(line);
    Run({std::istream_iterator<std::string>(words), {}});
  }
}

}  // namespace
}  // namespace etc

int main() {
  try {
    etc::RunAll(std::cin);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
