#include "tasks/openkp/prediction.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "tasks/openkp/key_phrase_lists.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

struct Candidate {
  float logit = 0;
  PhrasePosition position;
};

// Whether `b` is to be taken before `a`.
bool IsWorse(const Candidate& a, const Candidate& b) {
  if (a.logit != b.logit) {
    return a.logit < b.logit;
  }
  return a.position.length != b.position.length
             ? a.position.length > b.position.length
             : a.position.start > b.position.start;
}

std::vector<Candidate> Candidates(const OpenkpExample& example,
                                  const NgramLogits& logits, bool all_places) {
  std::vector<Candidate> candidates;
  for (int64_t n = 1; n <= kOpenkpMaxPhraseLength; ++n) {
    const int64_t places =
        all_places ? logits.num_words : example.num_words - n + 1;
    for (int64_t s = 0; s < places; ++s) {
      candidates.push_back(
          {.logit = logits.values[(n - 1) * logits.num_words + s],
           .position = {.start = s, .length = n}});
    }
  }
  return candidates;
}

}  // namespace

std::vector<std::string> DecodeKeyPhrases(
    const OpenkpExample& example, const NgramLogits& logits,
    const OpenkpDecodingOptions& options) {
  std::vector<Candidate> heap =
      Candidates(example, logits, options.official_compatibility);
  std::make_heap(heap.begin(), heap.end(), IsWorse);
  const std::vector<absl::string_view> words = OpenkpWords(example.text);
  const auto num_words = static_cast<int64_t>(words.size());
  std::vector<std::string> phrases;
  for (int64_t looked = 0;
       looked < options.max_positions && !heap.empty() &&
       static_cast<int64_t>(phrases.size()) < options.max_phrases;
       ++looked) {
    std::pop_heap(heap.begin(), heap.end(), IsWorse);
    const auto [start, length] = heap.back().position;
    heap.pop_back();
    const int64_t end = std::min(start + length, num_words);
    std::string phrase =
        start >= end ? ""
                     : LowerCase(absl::StrJoin(words.begin() + start,
                                               words.begin() + end, " "));
    if (!phrase.empty() &&
        std::find(phrases.begin(), phrases.end(), phrase) == phrases.end()) {
      phrases.push_back(std::move(phrase));
    }
  }
  return phrases;
}

std::string OpenkpPredictionLine(const std::string& url,
                                 const std::vector<std::string>& phrases) {
  nlohmann::ordered_json json = {{"url", url}};
  nlohmann::ordered_json& lists = json["KeyPhrases"] =
      nlohmann::ordered_json::array();
  for (const std::string& phrase : phrases) {
    lists.push_back(nlohmann::ordered_json::array({phrase}));
  }
  return json.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<OpenkpPhraseLists> ParseOpenkpPhraseLists(
    absl::string_view json, const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json object, ParseJson(json, where));
  JsonObjectReader reader(object, where);
  OpenkpPhraseLists lists;
  reader.Required("url", &lists.url);
  if (auto phrases = ReadKeyPhraseLists(reader, /*required=*/true)) {
    lists.phrases = *std::move(phrases);
  }
  ETC_RETURN_IF_ERROR(reader.Finish(JsonObjectReader::UnknownFields::kIgnore));
  return lists;
}

}  // namespace etc
