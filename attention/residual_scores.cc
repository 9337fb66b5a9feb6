#include "attention/residual_scores.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>

namespace etc {
namespace {

template <size_t kCount>
std::string Joined(const char* const (&names)[kCount]) {
  std::string text = names[0];
  for (size_t i = 1; i < kCount; ++i) {
    text += i + 1 < kCount ? ", " : " or ";
    text += names[i];
  }
  return text;
}

}  // namespace

ResidualAttention ResidualAttentionFromName(std::string_view name) {
  const std::optional<ResidualAttention> mode = ResidualAttentionNamed(name);
  TORCH_CHECK(mode.has_value(), "residual attention should be ",
              Joined(kResidualAttentionNames), ", but is ", name);
  return *mode;
}

ScoreStorage ScoreStorageFromName(std::string_view name) {
  const auto* const found = std::find(std::begin(kScoreStorageNames),
                                      std::end(kScoreStorageNames), name);
  TORCH_CHECK(found != std::end(kScoreStorageNames), "score storage should be ",
              Joined(kScoreStorageNames), ", but is ", name);
  return static_cast<ScoreStorage>(found - std::begin(kScoreStorageNames));
}

}  // namespace etc
