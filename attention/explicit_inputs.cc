#include <c10/util/Exception.h>

#include <algorithm>

#include "attention/attention_inputs.h"
#include "attention/pattern.h"

namespace etc {
namespace {

template <typename T>
using Matrix = torch::TensorAccessor<T, 2>;

// True if two tokens of these ids are together, and no padding.
bool AreTogether(int32_t id, int32_t other_id) {
  return id == other_id && id >= 0;
}

// True if long token `i` belongs to global token `g`.
bool Owns(const AttentionPattern& pattern, int64_t g, int64_t i) {
  return pattern.sentence[i] == g || pattern.paragraph[i] == g;
}

void MaterializeLongToLong(const AttentionPattern& pattern, Matrix<bool> mask) {
  const int64_t length = pattern.long_length();
  for (int64_t i = 0; i < length; ++i) {
    const int64_t begin = std::max<int64_t>(0, i - pattern.local_radius);
    const int64_t end = std::min(length, i + pattern.local_radius + 1);
    for (int64_t j = begin; j < end; ++j) {
      mask[i][j - i + pattern.local_radius] =
          AreTogether(pattern.long_segment[i], pattern.long_segment[j]);
    }
  }
}

void MaterializeLongAndGlobal(const AttentionPattern& pattern,
                              Matrix<bool> l2g_mask, Matrix<bool> g2l_mask) {
  for (int64_t i = 0; i < pattern.long_length(); ++i) {
    for (int64_t g = 0; g < pattern.global_length(); ++g) {
      const bool together =
          AreTogether(pattern.long_example[i], pattern.global_example[g]);
      const bool owns = Owns(pattern, g, i);
      l2g_mask[i][g] = together && (!pattern.hard_l2g || owns ||
                                    pattern.ignore_hard_l2g[i] != 0);
      g2l_mask[g][i] = together && (!pattern.hard_g2l || owns ||
                                    pattern.ignore_hard_g2l[g] != 0);
    }
  }
}

void MaterializeLinks(const AttentionPattern& pattern,
                      Matrix<int64_t> l2g_ids) {
  const int64_t linked = LinkedId(pattern.relative_pos_max_distance);
  for (int64_t i = 0; i < pattern.long_length(); ++i) {
    for (const int32_t g :
         {pattern.sentence[i], pattern.paragraph[i], pattern.linked[i]}) {
      if (g >= 0) {
        l2g_ids[i][g] = linked;
      }
    }
  }
}

void MaterializeGlobalToGlobal(const AttentionPattern& pattern,
                               Matrix<bool> mask) {
  for (int64_t g = 0; g < pattern.global_length(); ++g) {
    for (int64_t k = 0; k < pattern.global_length(); ++k) {
      mask[g][k] =
          AreTogether(pattern.global_example[g], pattern.global_example[k]);
    }
  }
}

void MaterializeGlobalDistances(const AttentionPattern& pattern,
                                Matrix<int64_t> ids) {
  const int64_t distance = pattern.relative_pos_max_distance;
  for (int64_t g = 0; g < pattern.global_length(); ++g) {
    for (int64_t k = 0; k < pattern.global_length(); ++k) {
      ids[g][k] = pattern.global_segment[g] == pattern.global_segment[k]
                      ? RelativeId(k - g, distance)
                      : OtherSegmentId(distance);
    }
  }
}

// [2 radius + 1]: the ids of one row; all rows are equal.
torch::Tensor WindowIds(int64_t radius, int64_t distance) {
  std::vector<int64_t> ids;
  for (int64_t delta = -radius; delta <= radius; ++delta) {
    ids.push_back(RelativeId(delta, distance));
  }
  return torch::tensor(ids, torch::kInt64);
}

}  // namespace

ExplicitInputs Materialize(const std::vector<AttentionPattern>& patterns,
                           int64_t long_length, int64_t global_length) {
  TORCH_CHECK(!patterns.empty(),
              "there should be at least one pattern, whose radius is that of "
              "the tensors");
  CheckPatterns(patterns, long_length, global_length);
  const int64_t batch = static_cast<int64_t>(patterns.size());
  const int64_t radius = patterns[0].local_radius;
  const int64_t window = 2 * radius + 1;
  const int64_t distance = patterns[0].relative_pos_max_distance;

  ExplicitInputs out;
  out.l2l_mask = torch::zeros({batch, long_length, window}, torch::kBool);
  out.l2g_mask =
      torch::zeros({batch, long_length, global_length}, torch::kBool);
  out.g2g_mask =
      torch::zeros({batch, global_length, global_length}, torch::kBool);
  out.g2l_mask =
      torch::zeros({batch, global_length, long_length}, torch::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    MaterializeLongToLong(patterns[b], out.l2l_mask.accessor<bool, 3>()[b]);
    MaterializeLongAndGlobal(patterns[b], out.l2g_mask.accessor<bool, 3>()[b],
                             out.g2l_mask.accessor<bool, 3>()[b]);
    MaterializeGlobalToGlobal(patterns[b], out.g2g_mask.accessor<bool, 3>()[b]);
  }
  if (distance == 0) {
    return out;
  }

  out.l2l_ids =
      WindowIds(radius, distance).expand({batch, long_length, window});
  out.l2g_ids = torch::full({batch, long_length, global_length},
                            NotLinkedId(distance), torch::kInt64);
  out.g2g_ids =
      torch::zeros({batch, global_length, global_length}, torch::kInt64);
  for (int64_t b = 0; b < batch; ++b) {
    MaterializeLinks(patterns[b], out.l2g_ids.accessor<int64_t, 3>()[b]);
    MaterializeGlobalDistances(patterns[b],
                               out.g2g_ids.accessor<int64_t, 3>()[b]);
  }
  out.g2l_ids = out.l2g_ids.transpose(1, 2);
  return out;
}

}  // namespace etc
