#ifndef ETC_TESTS_TASKS_NQ_PAGE_RECORD_H_
#define ETC_TESTS_TASKS_NQ_PAGE_RECORD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tasks/nq/raw.h"
#include "tasks/text/tokenizer.h"

namespace etc {

inline NqSpan NqTokenSpan(int64_t start, int64_t end) {
  return {.start_token = start, .end_token = end};
}

// A record of a page that is given as its tokens between single blanks. Its
// candidates are its paragraphs, tables, rows, lists and items.
inline NqRecord NqPage(const std::string& page, const std::string& question,
                       std::vector<NqAnnotation> annotations = {}) {
  static const auto* elements =
      new std::set<std::string>{"<P>", "<Table>", "<Tr>", "<Ul>", "<Li>"};
  NqRecord record{.example_id = -42,
                  .question = question,
                  .annotations = std::move(annotations)};
  std::vector<size_t> open;
  for (const absl::string_view text :
       absl::StrSplit(page, ' ', absl::SkipEmpty())) {
    const auto at = static_cast<int64_t>(record.tokens.size());
    record.tokens.push_back(
        {.text = std::string(text), .is_html = text.front() == '<'});
    if (elements->contains(std::string(text))) {
      open.push_back(record.candidates.size());
      record.candidates.push_back(
          {.span = NqTokenSpan(at, 0), .top_level = open.size() == 1});
    } else if (absl::StartsWith(text, "</") &&
               elements->contains(absl::StrCat("<", text.substr(2)))) {
      record.candidates[open.back()].span.end_token = at + 1;
      open.pop_back();
    }
  }
  return record;
}

// The instance of doc/nq.md 1.2, and its words with the ids of doc/nq.md 9.1.
inline NqRecord NqSpecRecord() {
  return NqPage(
      "<H1> Blue </H1> <P> Blue was written by Ann Lee . </P> <Table> <Tr> "
      "Year 1999 </Tr> </Table>",
      "who wrote blue",
      {{.long_answer = NqTokenSpan(3, 12),
        .short_answers = {NqTokenSpan(8, 10)}}});
}

// Words between blanks; each is some pieces, or one that says it is unknown.
class NqSpecTokenizer : public Tokenizer {
 public:
  std::vector<Token> Encode(absl::string_view text) const override {
    static const auto* words = new std::map<std::string, std::vector<int32_t>>{
        {"who", {200}},  {"wrote", {201}},        {"blue", {202}},
        {"was", {203}},  {"written", {204, 205}}, {"by", {206}},
        {"ann", {207}},  {"lee", {208}},          {".", {209}},
        {"year", {210}}, {"1999", {211}},         {"nothing", {}}};
    std::vector<Token> pieces;
    for (const absl::string_view word :
         absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      const auto found = words->find(absl::AsciiStrToLower(word));
      for (const int32_t id :
           found == words->end() ? std::vector<int32_t>{100} : found->second) {
        pieces.push_back({.id = id});
      }
    }
    return pieces;
  }
  int64_t vocab_size() const override { return 212; }
  std::string Piece(int32_t id) const override {
    static const auto* pieces = new std::map<int32_t, std::string>{
        {101, "[CLS]"},       {102, "[SEP]"}, {107, "[unused102]"},
        {108, "[unused103]"}, {200, "who"},   {201, "wrote"},
        {202, "blue"},        {203, "was"},   {204, "writ"},
        {205, "##ten"},       {206, "by"},    {207, "ann"},
        {208, "lee"},         {209, "."},     {210, "year"},
        {211, "1999"}};
    const auto found = pieces->find(id);
    return found == pieces->end() ? "[UNK]" : found->second;
  }
  int32_t Id(absl::string_view piece) const override {
    for (int32_t id = 101; id < 212; ++id) {
      if (Piece(id) == piece) {
        return id;
      }
    }
    return piece == "[UNK]" ? 100 : -1;
  }
  bool lower_cases() const override { return true; }
};

}  // namespace etc

#endif  // ETC_TESTS_TASKS_NQ_PAGE_RECORD_H_
