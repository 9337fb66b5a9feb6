#include "tasks/task/benchmark.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace etc {

void ThrowNoLogit(size_t index, size_t size) {
  C10_THROW_ERROR(
      Error, absl::StrCat("logit ", index, " of a row of ", size, ": the head ",
                          "gives fewer than are read"));
}

void AddTruncated(absl::Span<const TruncatedPart> parts, std::string* json) {
  if (parts.empty()) {
    return;
  }
  json->pop_back();  // the brace
  absl::StrAppend(json, ",\"truncated\":{");
  const char* separator = "";
  for (const TruncatedPart& part : parts) {
    absl::StrAppend(json, separator, "\"", part.unit, "\":", part.count);
    if (part.from.has_value()) {
      absl::StrAppend(json, ",\"from\":", *part.from);
    }
    separator = ",";
  }
  absl::StrAppend(json, "}}");
}

InputOptions InputOptionsOf(const EtcConfig& model) {
  return {
      .has_long_tokens = model.has_long_tokens,
      .has_second_type = model.has_long_tokens || model.segment_vocab_size > 1,
      .pattern = {.local_radius = model.local_radius,
                  .relative_pos_max_distance = model.relative_pos_max_distance,
                  .hard_g2l = model.use_hard_g2l_mask,
                  .hard_l2g = model.use_hard_l2g_mask}};
}

InputOptions InputOptionsOf(const RunConfig& config) {
  InputOptions input = InputOptionsOf(config.model);
  input.max_long_length = config.data.max_long_length;
  input.max_global_length = config.data.max_global_length;
  input.tokenizer_kind =
      config.tokenizer.type == "sentencepiece" ? TokenizerKind::kSentencePiece
      : config.tokenizer.type == "huggingface" ? TokenizerKind::kHuggingFace
                                               : TokenizerKind::kWordPiece;
  return input;
}

absl::Status CheckTables(const EtcConfig& model, const TableSizes& needed,
                         int64_t pieces, const std::string& source) {
  const int64_t tokens = std::max(pieces, needed.tokens);
  if (model.vocab_size < tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": model.vocab_size should be at least ", tokens, ", for ",
        pieces >= needed.tokens ? "the vocabulary" : needed.token_names,
        ", but is ", model.vocab_size));
  }
  if (model.segment_vocab_size < needed.types) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": model.segment_vocab_size should be at least ", needed.types,
        ", for the types of tokens, but is ", model.segment_vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckLengths(const InputOptions& input,
                          const NeededLengths& needed,
                          const std::string& source) {
  const auto check = [&source](const char* field, int64_t value, int64_t least,
                               const char* use) {
    return value >= least ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrCat(
                                source, ": ", field, " should be at least ",
                                least, ", for ", use, ", but is ", value));
  };
  ETC_RETURN_IF_ERROR(check("data.max_long_length", input.max_long_length,
                            needed.long_tokens, needed.long_use));
  return check("data.max_global_length", input.max_global_length,
               needed.global_tokens, needed.global_use);
}

HoldOutOptions HoldOutOptionsOf(const DataConfig& data) {
  return {.patterns = data.train,
          .fraction = data.dev_fraction,
          .seed = data.dev_seed,
          .expected = data.dev_records};
}

}  // namespace etc
