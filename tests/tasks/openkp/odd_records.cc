// Odd records of tasks/openkp.

#include "tests/tasks/odd_records.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

json Features(OddRecords* odd) {
  json features = json::array();
  for (int64_t i = 0; i < 20; ++i) {
    const bool is_flag = i % 10 == 9 || (i % 10 >= 4 && i % 10 < 8);
    features.push_back(is_flag
                           ? static_cast<double>(odd->Below(2))
                           : odd->Of<double>({-1e30, -50, .5, 12, 14.5, 1e30}));
  }
  return features;
}

json KeyPhrases(OddRecords* odd, const std::vector<std::string>& texts) {
  json phrases = json::array();
  phrases.push_back({odd->Of(OddRecordWords())});
  for (int64_t k = odd->Below(4); k > 0; --k) {
    const std::string phrase = odd->OneIn(3)   ? ""
                               : odd->OneIn(2) ? odd->Of(texts)
                                               : odd->Fragment();
    phrases.push_back(std::vector<std::string>(absl::StrSplit(phrase, ' ')));
  }
  return phrases;
}

json OpenkpOddRecord(OddRecords* odd) {
  json elements = json::array();
  std::vector<std::string> texts;
  int64_t words = 0;
  const auto add = [&](const std::string& text, int64_t size) {
    elements.push_back({{"Id", 7},
                        {"text", text},
                        {"feature", Features(odd)},
                        {"start_idx", words},
                        {"end_idx", words + size}});
    words += size;
  };
  for (int64_t v = 1 + odd->Below(5); v > 0; --v) {
    texts.push_back(odd->Text());
    const std::vector<std::string> split = absl::StrSplit(texts.back(), ' ');
    add(texts.back(), static_cast<int64_t>(split.size()));
    if (odd->OneIn(5)) {
      add("", 0);
    }
  }
  json record = {{"url", odd->OneIn(50) ? std::string(1001, 'u') : odd->Text()},
                 {"text", absl::StrJoin(texts, " ")},
                 {"VDOM", elements.dump()}};
  if (!odd->OneIn(6)) {
    record["KeyPhrases"] = KeyPhrases(odd, texts);
  }
  if (odd->OneIn(8)) {
    record.erase("VDOM");
  }
  return record;
}

json OpenkpOddOptions(OddRecords* odd) {
  const bool fixed_blocks = odd->OneIn(4);
  return {{"use_visual_features_in_long", odd->OneIn(2) && !fixed_blocks},
          {"use_visual_features_in_global", !fixed_blocks},
          {"fixed_block_length", fixed_blocks ? 1 + odd->Below(4) : 0},
          {"max_position_predictions", 1 + odd->Below(100)},
          {"official_compatibility", odd->OneIn(2)}};
}

[[maybe_unused]] const bool openkp_is_registered =
    OddTask::Register("openkp", {.record = OpenkpOddRecord,
                                 .options = OpenkpOddOptions,
                                 .answers = {"KeyPhrases"}});

}  // namespace
}  // namespace etc
