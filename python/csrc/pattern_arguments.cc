#include "python/csrc/pattern_arguments.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "attention/attention_inputs.h"
#include "attention/pattern.h"

namespace etc {
namespace {

// PatternArguments::numbers by name.
struct Numbers {
  explicit Numbers(at::IntArrayRef numbers) {
    constexpr size_t kCount = 7;
    TORCH_CHECK(numbers.size() == kCount, "pattern should be ", kCount,
                " numbers, but is ", numbers);
    TORCH_CHECK(numbers[0] >= 0 && numbers[0] <= static_cast<int64_t>(
                                                     PatternKind::kGlobalSide),
                "pattern has the unknown kind ", numbers[0]);
    kind = static_cast<PatternKind>(numbers[0]);
    before = numbers[1];
    after = numbers[2];
    max_distance = numbers[3];
    causal = numbers[4] != 0;
    hard_l2g = numbers[5] != 0;
    hard_g2l = numbers[6] != 0;
  }

  PatternKind kind;
  int64_t before, after, max_distance;
  bool causal, hard_l2g, hard_g2l;
};

SoftmaxPattern OneBlockPattern(const Numbers& numbers,
                               const PatternArguments& arguments,
                               const PatternSizes& sizes) {
  const KeyPatternOptions options = {.queries = sizes.queries,
                                     .keys = sizes.own_keys + sizes.other_keys,
                                     .batch = sizes.batch,
                                     .max_distance = numbers.max_distance};
  SoftmaxPattern pattern;
  switch (numbers.kind) {
    case PatternKind::kCausal:
      pattern = CausalPattern(options);
      break;
    case PatternKind::kWindow:
      pattern = WindowPattern(
          options, {.before = numbers.before, .after = numbers.after});
      break;
    case PatternKind::kMatrix:
      return PatternFromMask(arguments.first, options);
    default:
      pattern = AllKeysPattern(options);
  }
  if (!arguments.first.defined()) {
    return pattern;
  }
  return arguments.second.defined()
             ? OnlyDocuments(pattern, arguments.first, arguments.second)
             : OnlyKeys(pattern, arguments.first);
}

// Row `row` of one example, of [B, rows, length] int32 on the CPU.
template <typename Value>
std::vector<Value> RowOf(const torch::Tensor& tokens, int64_t batch,
                         int64_t row) {
  const int64_t length = tokens.size(2);
  const int32_t* const begin =
      tokens.data_ptr<int32_t>() + (batch * tokens.size(1) + row) * length;
  return {begin, begin + length};
}

torch::Tensor RowsOnCpu(const torch::Tensor& tokens, const char* name,
                        int64_t rows, int64_t batch, int64_t length) {
  TORCH_CHECK(tokens.defined() && tokens.scalar_type() == torch::kInt32 &&
                  tokens.sizes() == at::IntArrayRef({batch, rows, length}),
              name, " should be int32 ", at::IntArrayRef({batch, rows, length}),
              ", but is ", tokens.defined() ? tokens.toString() : "undefined",
              " ", tokens.defined() ? tokens.sizes() : at::IntArrayRef());
  return tokens.to(torch::kCPU).contiguous();
}

std::vector<AttentionPattern> PatternsOf(const Numbers& numbers,
                                         const torch::Tensor& long_tokens,
                                         const torch::Tensor& global_tokens) {
  std::vector<AttentionPattern> patterns;
  for (int64_t b = 0; b < long_tokens.size(0); ++b) {
    AttentionPattern pattern;
    pattern.long_segment = RowOf<int32_t>(long_tokens, b, 0);
    pattern.long_example = RowOf<int32_t>(long_tokens, b, 1);
    pattern.sentence = RowOf<int32_t>(long_tokens, b, 2);
    pattern.paragraph = RowOf<int32_t>(long_tokens, b, 3);
    pattern.linked = RowOf<int32_t>(long_tokens, b, 4);
    pattern.ignore_hard_l2g = RowOf<uint8_t>(long_tokens, b, 5);
    pattern.global_example = RowOf<int32_t>(global_tokens, b, 0);
    pattern.global_segment = RowOf<int32_t>(global_tokens, b, 1);
    pattern.ignore_hard_g2l = RowOf<uint8_t>(global_tokens, b, 2);
    pattern.hard_l2g = numbers.hard_l2g;
    pattern.hard_g2l = numbers.hard_g2l;
    pattern.local_radius = numbers.before;
    pattern.relative_pos_max_distance = numbers.max_distance;
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

// ETC's inputs from tokens' tensors, of which either may be undefined.
AttentionInputs InputsOf(const Numbers& numbers,
                         const PatternArguments& arguments, int64_t batch,
                         int64_t long_length, int64_t global_length) {
  const torch::Tensor& longs = arguments.first;
  const torch::Tensor& globals = arguments.second;
  const torch::Tensor& any = longs.defined() ? longs : globals;
  if (!any.defined()) {
    return AttentionInputs::Everything(numbers.max_distance);
  }
  if (any.dim() == 3) {
    constexpr int64_t kLongRows = 6;
    constexpr int64_t kGlobalRows = 3;
    return AttentionInputs(PatternsOf(
        numbers, RowsOnCpu(longs, "long_tokens", kLongRows, batch, long_length),
        RowsOnCpu(globals, "global_tokens", kGlobalRows, batch,
                  global_length)));
  }
  if (any.scalar_type() == torch::kBool) {
    return AttentionInputs::Padded(longs, globals, numbers.max_distance);
  }
  TORCH_CHECK(longs.defined() && globals.defined(),
              "ids of documents should be given for long and global tokens");
  return AttentionInputs::Packed(longs, globals, numbers.max_distance);
}

SoftmaxPattern SidePattern(const Numbers& numbers,
                           const PatternArguments& arguments,
                           const PatternSizes& sizes) {
  const bool is_long = numbers.kind == PatternKind::kLongSide;
  const int64_t long_length = is_long ? sizes.own_keys : sizes.other_keys;
  const int64_t global_length = is_long ? sizes.other_keys : sizes.own_keys;
  const AttentionInputs inputs =
      InputsOf(numbers, arguments, sizes.batch, long_length, global_length);
  return (numbers.causal ? inputs.Causal() : inputs)
      .Softmax(is_long ? QuerySide::kLong : QuerySide::kGlobal, sizes.batch,
               long_length, global_length, numbers.before);
}

}  // namespace

SoftmaxPattern PatternOf(const PatternArguments& arguments,
                         const PatternSizes& sizes) {
  const Numbers numbers(arguments.numbers);
  return numbers.kind == PatternKind::kLongSide ||
                 numbers.kind == PatternKind::kGlobalSide
             ? SidePattern(numbers, arguments, sizes)
             : OneBlockPattern(numbers, arguments, sizes);
}

}  // namespace etc
