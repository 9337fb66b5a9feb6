#include "etc/admin_profile.h"

#include <c10/util/Exception.h>
#include <torch/utils.h>

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "attention/pattern.h"

namespace etc {
namespace {

// True for tokens that see any other or themselves, in both streams: [B, L] and
// [B, G] bool.
struct SeeingTokens {
  torch::Tensor longs;
  torch::Tensor globals;
};

SeeingTokens ByPatterns(const std::vector<AttentionPattern>& patterns,
                        int64_t long_length, int64_t global_length) {
  const auto batch = static_cast<int64_t>(patterns.size());
  const SeeingTokens sees = {
      .longs = torch::zeros({batch, long_length}, torch::kBool),
      .globals = torch::zeros({batch, global_length}, torch::kBool)};
  for (int64_t b = 0; b < batch; ++b) {
    const AttentionPattern& pattern = patterns[static_cast<size_t>(b)];
    bool* const longs = sees.longs.data_ptr<bool>() + b * long_length;
    for (size_t i = 0; i < pattern.long_segment.size(); ++i) {
      longs[i] = pattern.long_segment[i] >= 0 || pattern.long_example[i] >= 0;
    }
    bool* const globals = sees.globals.data_ptr<bool>() + b * global_length;
    for (size_t g = 0; g < pattern.global_example.size(); ++g) {
      globals[g] = pattern.global_example[g] >= 0;
    }
  }
  return sees;
}

// Rows of two masks, [B, length, keys] with sizes that may be 1, in which
// anything is true: [B, length].
torch::Tensor AnyOf(const torch::Tensor& own, const torch::Tensor& other,
                    at::IntArrayRef sizes) {
  torch::Tensor any = torch::zeros(sizes, torch::kBool);
  for (const torch::Tensor& mask : {own, other}) {
    if (mask.size(-1) > 0) {
      any = any.logical_or(mask.any(-1));
    }
  }
  return any.expand(sizes);
}

SeeingTokens SeeingTokensOf(const EtcInput& input, const EtcConfig& config) {
  const int64_t batch = input.token_ids.size(0);
  const int64_t longs = input.token_ids.size(1);
  const int64_t globals = input.global_token_ids.size(1);
  const AttentionInputs attention =
      input.attention.WithDistance(config.relative_pos_max_distance);
  if (const auto* patterns = attention.patterns()) {
    CheckPatterns(*patterns, longs, globals);
    TORCH_CHECK(static_cast<int64_t>(patterns->size()) == batch, "there are ",
                patterns->size(), " patterns for a batch of ", batch);
    return ByPatterns(*patterns, longs, globals);
  }
  const ExplicitInputs masks = attention.Tensors(
      batch, longs, globals, config.local_radius, torch::kCPU);
  return {.longs = AnyOf(masks.l2l_mask, masks.l2g_mask, {batch, longs}),
          .globals = AnyOf(masks.g2g_mask, masks.g2l_mask, {batch, globals})};
}

ProfiledStream StreamOf(const torch::Tensor& sees,
                        const torch::Device& device) {
  const torch::Tensor rows = sees.flatten().nonzero().flatten();
  ProfiledStream stream = {.tokens = rows.numel()};
  if (stream.tokens < sees.numel()) {
    stream.rows = rows.to(device);
  }
  return stream;
}

}  // namespace

AdminProfile BeginAdminProfile(const EtcInput& input, const EtcConfig& config) {
  const SeeingTokens sees = SeeingTokensOf(input, config);
  const torch::Device device = input.global_token_ids.device();
  AdminProfile profile = {.longs = StreamOf(sees.longs, device),
                          .globals = StreamOf(sees.globals, device)};
  TORCH_CHECK(profile.longs.tokens + profile.globals.tokens > 0,
              "omegas cannot be set by a batch without tokens");
  return profile;
}

bool HasUnitOmegas(const EtcModel& model) {
  for (const auto& parameter : model->named_parameters()) {
    if (absl::EndsWith(parameter.key(), "omega") &&
        !parameter.value().eq(1).all().item<bool>()) {
      return false;
    }
  }
  return true;
}

}  // namespace etc
