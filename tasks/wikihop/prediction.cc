#include "tasks/wikihop/prediction.h"

#include <algorithm>

#include "nlohmann/json.hpp"

namespace etc {

int64_t BestCandidate(const WikihopExample& example, const float* logits) {
  return std::max_element(logits, logits + example.num_candidates()) - logits;
}

std::string WikihopPredictionsToJson(
    const std::vector<WikihopPrediction>& predictions) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [id, answer] : predictions) {
    json[id] = answer;
  }
  return json.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace etc
