#ifndef ETC_TESTS_TASKS_OPENKP_SPEC_RECORD_H_
#define ETC_TESTS_TASKS_OPENKP_SPEC_RECORD_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tasks/openkp/raw.h"
#include "tasks/openkp/task.h"
#include "tasks/text/wordpiece_tokenizer.h"

namespace etc {

// The vocabulary of the official tests (doc/openkp.md 10.1), with the special
// pieces that every vocabulary must have behind it: [UNK] is 20.
inline std::shared_ptr<const Tokenizer> OpenkpSpecTokenizer() {
  return *ParseWordPieceTokenizer(
      "[PAD]\n[unused0]\n[unused1]\nstar\ntrek\ndiscovery\nseason\n1\njason\n"
      "isaac\n##s\nand\ndoug\nfoo\nwars\nnot\n##bis\nminimize\nhydro\nwrecked\n"
      "[UNK]\n[CLS]\n[SEP]\n",
      "doc/openkp.md 10.1");
}

// Features of the elements of doc/openkp.md 10.3 and 10.4.
inline const nlohmann::json kHeadingFeature = {
    44.0, 728.0, 78.0, 45.0, 1.0, 0.0, 1.0, 0.0, 20.0, 0.0,
    44.0, 728.0, 78.0, 45.0, 1.0, 0.0, 1.0, 0.0, 20.0, 0.0};
inline const nlohmann::json kBoldFeature = {
    208.0, 49.0,  138.0, 15.0, 0.0, 0.0, 0.0, 0.0, 12.0, 1.0,
    198.0, 564.0, 138.0, 15.0, 1.0, 0.0, 0.0, 0.0, 12.0, 1.0};
inline const nlohmann::json kLeafFeature = {
    208.0,  49.0, 138.0, 15.0, 0.0, 0.0, 0.0, 1.0, 12.0, 1.0,
    3110.0, 92.0, 123.0, 75.0, 1.0, 0.0, 0.0, 1.0, 13.0, 1.0};

using OpenkpPieces = std::vector<std::pair<std::string, nlohmann::json>>;

// The elements of doc/openkp.md 10.3.
inline OpenkpPieces StarTrekPieces() {
  return {{"Star Trek Discovery Season 1 Jason", kHeadingFeature},
          {"Isaacs Jason Isaacs and Doug", kBoldFeature}};
}

inline nlohmann::json OpenkpVdom(const OpenkpPieces& pieces) {
  nlohmann::json vdom = nlohmann::json::array();
  size_t words = 0;
  for (const auto& [text, feature] : pieces) {
    const size_t begin = words;
    words += OpenkpWords(text).size();
    vdom.push_back({{"Id", 7},
                    {"text", text},
                    {"feature", feature},
                    {"start_idx", begin},
                    {"end_idx", words}});
  }
  return vdom;
}

// A record whose text is that of its elements, as JSON. `phrases` have their
// words separated by blanks.
inline nlohmann::json OpenkpJson(const OpenkpPieces& pieces,
                                 const std::vector<std::string>& phrases) {
  std::vector<std::string> texts;
  for (const auto& [text, feature] : pieces) {
    texts.push_back(text);
  }
  nlohmann::json lists = nlohmann::json::array();
  for (const std::string& phrase : phrases) {
    lists.push_back(std::vector<std::string>(absl::StrSplit(phrase, ' ')));
  }
  return {
      {"url", "http://x.org/1"},
      {"text", absl::StrJoin(texts, " ")},
      {"VDOM", OpenkpVdom(pieces).dump(
                   -1, ' ', false, nlohmann::json::error_handler_t::replace)},
      {"KeyPhrases", lists}};
}

inline OpenkpRecord OpenkpSpecRecord(const OpenkpPieces& pieces,
                                     const std::vector<std::string>& phrases) {
  return *Openkp().ParseRecord(OpenkpJson(pieces, phrases).dump(), "spec");
}

// The made-up instance of doc/openkp.md 1.
inline nlohmann::json GreenTeaJson() {
  nlohmann::json json = {
      {"url", "http://x.org/tea"},
      {"text", "Green Tea Guide How to brew green tea at home"},
      {"VDOM",
       R"([{"Id":7,"text":"Green Tea Guide","feature":[44.0,728.0,78.0,45.0,)"
       R"(1.0,0.0,1.0,0.0,20.0,0.0,44.0,728.0,78.0,45.0,1.0,0.0,1.0,0.0,20.0,)"
       R"(0.0],"start_idx":0,"end_idx":3},{"Id":7,"text":)"
       R"("How to brew green tea at home","feature":[44.0,600.0,140.0,15.0,)"
       R"(0.0,0.0,0.0,0.0,12.0,1.0,40.0,640.0,130.0,40.0,1.0,0.0,0.0,0.0,)"
       R"(12.0,0.0],"start_idx":3,"end_idx":10}])"}};
  json["KeyPhrases"] = {{"Green", "Tea"}, {"brew", "green", "tea"}};
  return json;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_OPENKP_SPEC_RECORD_H_
