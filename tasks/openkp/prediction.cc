#include <c10/util/Exception.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "tasks/openkp/task.h"
#include "tasks/task/official_json.h"
#include "tasks/text/text_folding.h"

namespace etc {
namespace {

struct Candidate {
  float logit = 0;
  PhrasePosition position;
};

// Returns true if `b` is to be taken before `a`.
bool IsWorse(const Candidate& a, const Candidate& b) {
  if (a.logit != b.logit) {
    return a.logit < b.logit;
  }
  return a.position.length != b.position.length
             ? a.position.length > b.position.length
             : a.position.start > b.position.start;
}

std::vector<Candidate> Candidates(const OpenkpExample& example, LogitRow ngrams,
                                  bool all_places) {
  const auto width =
      static_cast<int64_t>(ngrams.size()) / kOpenkpMaxPhraseLength;
  TORCH_CHECK(example.num_words <= width, "document ", example.record_id,
              " has more words than logits");
  std::vector<Candidate> candidates;
  for (int64_t n = 1; n <= kOpenkpMaxPhraseLength; ++n) {
    const int64_t places = all_places ? width : example.num_words - n + 1;
    for (int64_t s = 0; s < places; ++s) {
      candidates.push_back(
          {.logit = ngrams[static_cast<size_t>((n - 1) * width + s)],
           .position = {.start = s, .length = n}});
    }
  }
  return candidates;
}

// {"url": "http://x.org", "KeyPhrases": [["green tea"], ["tea"]]}
nlohmann::ordered_json OpenkpPredictionToJson(
    const std::string& url, const std::vector<std::string>& phrases) {
  nlohmann::ordered_json json = {{"url", url}};
  nlohmann::ordered_json& lists = json["KeyPhrases"] =
      nlohmann::ordered_json::array();
  for (const std::string& phrase : phrases) {
    lists.push_back(nlohmann::ordered_json::array({phrase}));
  }
  return json;
}

}  // namespace

std::vector<std::string> DecodeKeyPhrases(const OpenkpExample& example,
                                          const OpenkpLogits<LogitRow>& logits,
                                          const OpenkpOptions& options) {
  std::vector<Candidate> heap =
      Candidates(example, logits.ngrams, options.official_compatibility);
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

std::string Openkp::PredictionJson(const std::string& id,
                                   const Prediction& prediction) const {
  return JsonAsciiText(OpenkpPredictionToJson(id, prediction));
}

std::string OpenkpPredictionLines(
    const ById<std::vector<std::string>>& predictions) {
  const auto last = LastOfEachId(predictions);
  std::set<absl::string_view> written;
  ById<std::vector<std::string>> of_pages;
  for (const auto& [url, phrases] : predictions) {
    if (written.insert(url).second) {
      of_pages.emplace_back(url, *last.at(url));
    }
  }
  return AsciiLines(of_pages, OpenkpPredictionToJson);
}

Openkp::PredictionsOr Openkp::ReadPredictions(const std::string& path) const {
  using Phrases = std::vector<std::string>;
  return ReadById<Phrases>(
      path,
      [](const std::string& line, const std::string& where)
          -> absl::StatusOr<std::pair<std::string, Phrases>> {
        ETC_ASSIGN_OR_RETURN(OpenkpPhraseLists lists,
                             ParseOpenkpPhraseLists(line, where));
        return std::pair(std::move(lists.url), JoinedPhrases(lists.phrases));
      });
}

}  // namespace etc
