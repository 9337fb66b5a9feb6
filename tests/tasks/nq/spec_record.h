#ifndef ETC_TESTS_TASKS_NQ_SPEC_RECORD_H_
#define ETC_TESTS_TASKS_NQ_SPEC_RECORD_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tasks/nq/raw.h"

namespace etc {

// The instance of doc/nq.md 1.2 in the original format.
inline nlohmann::json NqSpecJson() {
  const auto token = [](const char* text, int start, int end) {
    return nlohmann::json{{"token", text},
                          {"start_byte", start},
                          {"end_byte", end},
                          {"html_token", text[0] == '<'}};
  };
  const auto candidate = [](int start_byte, int end_byte, int start_token,
                            int end_token, bool top_level) {
    return nlohmann::json{{"start_byte", start_byte},
                          {"end_byte", end_byte},
                          {"start_token", start_token},
                          {"end_token", end_token},
                          {"top_level", top_level}};
  };
  const nlohmann::json short_answer = {{"start_byte", 48},
                                       {"end_byte", 55},
                                       {"start_token", 8},
                                       {"end_token", 10}};
  const nlohmann::json annotation = {
      {"long_answer",
       {{"start_byte", 25},
        {"end_byte", 60},
        {"start_token", 3},
        {"end_token", 12},
        {"candidate_index", 0}}},
      {"short_answers", nlohmann::json::array({short_answer})},
      {"yes_no_answer", "NONE"}};
  return {{"example_id", -42},
          {"question_text", "who wrote blue"},
          {"question_tokens", {"who", "wrote", "blue"}},
          {"document_url", "http://x/Blue"},
          {"document_html",
           "<HTML><BODY><H1>Blue</H1><P>Blue was written by Ann Lee.</P><Table>"
           "<Tr>Year 1999</Tr></Table></BODY></HTML>"},
          {"document_tokens",
           {token("<H1>", 12, 16), token("Blue", 16, 20),
            token("</H1>", 20, 25), token("<P>", 25, 28), token("Blue", 28, 32),
            token("was", 33, 36), token("written", 37, 44), token("by", 45, 47),
            token("Ann", 48, 51), token("Lee", 52, 55), token(".", 55, 56),
            token("</P>", 56, 60), token("<Table>", 60, 67),
            token("<Tr>", 67, 71), token("Year", 71, 75), token("1999", 76, 80),
            token("</Tr>", 80, 85), token("</Table>", 85, 93)}},
          {"long_answer_candidates",
           {candidate(25, 60, 3, 12, true), candidate(60, 93, 12, 18, true),
            candidate(67, 85, 13, 17, false)}},
          {"annotations", nlohmann::json::array({annotation})}};
}

// Returns the official converter's output for a record in the original format
// (doc/nq.md 1.3).
inline nlohmann::json SimplifiedNqJson(nlohmann::json json) {
  const auto without_bytes = [](nlohmann::json* span) {
    span->erase("start_byte");
    span->erase("end_byte");
  };
  std::string text;
  for (const nlohmann::json& token : json["document_tokens"]) {
    absl::StrAppend(
        &text, text.empty() ? "" : " ",
        absl::StrReplaceAll(token["token"].get<std::string>(), {{" ", "_"}}));
  }
  for (nlohmann::json& candidate : json["long_answer_candidates"]) {
    without_bytes(&candidate);
  }
  for (nlohmann::json& annotation : json["annotations"]) {
    without_bytes(&annotation["long_answer"]);
    for (nlohmann::json& span : annotation["short_answers"]) {
      without_bytes(&span);
    }
  }
  for (const char* field :
       {"document_html", "document_tokens", "question_tokens"}) {
    json.erase(field);
  }
  json["document_text"] = text;
  return json;
}

}  // namespace etc

#endif  // ETC_TESTS_TASKS_NQ_SPEC_RECORD_H_
