#include "tests/tasks/odd_records.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace etc {
namespace {

using nlohmann::json;

// Stands for half a surrogate pair, which UTF-8 cannot have.
constexpr char kHalfSurrogate[] = "\uE000";

const std::vector<std::string>& OddFragments() {
  static const auto* fragments = new std::vector<std::string>{
      // White space, and what is not seen.
      "\t", "\n", "\r\n", "\u00a0", "\u202f", "\u3000", "\u2028", "\u200b",
      "\u200d", "\ufeff", std::string(1, '\0'),
      // Marks with and without a letter, and letters made of several.
      "e\u0301", "\u0301", "\u0bbe", "\u1100\u1161\u11a8",
      // Right to left; emoji; characters that folding makes longer.
      "\u05e9\u05dc\u05d5", "\u202e", "\U0001f600",
      "\U0001f468\u200d\U0001f469", "\u0130", "\u03a3", "\ufb01", "\u00bd",
      "\u6771", "\ufffd", "\U0010ffff",
      // Fragments that tokenizers and sentence splitters look for.
      ".", "...", "Mr.", "(", "\u201c", "##", "[UNK]", "[CLS]", "<unk>",
      "\u2581", "12,", "1,234", "-", "<P>", "</P>", "_", std::string(300, 'a')};
  return *fragments;
}

}  // namespace

std::vector<std::string> OddRecordWords() {
  return {"green", "tea", "norway", "yes", "no", "the", "jane", "roe", "ab"};
}

std::string OddRecords::Record(const std::string& task) {
  json record = task == "wikihop"    ? Wikihop()
                : task == "hotpotqa" ? Hotpotqa()
                : task == "openkp"   ? Openkp()
                : task == "classify" ? Classify()
                : task == "glue"     ? Glue()
                : task == "squad"    ? Squad()
                                     : Nq();
  if (OneIn(20)) {
    auto field = record.begin();
    std::advance(field, Below(static_cast<int64_t>(record.size())));
    field.value() = Of<json>({nullptr, "", 5, json::array(), json::object()});
  }
  return absl::StrReplaceAll(record.dump(), {{kHalfSurrogate, "\\ud83d"}});
}

std::string OddRecords::Fragment() {
  if (OneIn(400)) {
    return kHalfSurrogate;
  }
  return OneIn(3) ? Of(OddFragments()) : Of(OddRecordWords());
}

std::string OddRecords::Text() {
  std::string text;
  for (int64_t i = OneIn(6) ? 0 : 1 + Below(6); i > 0; --i) {
    const char* const between = OneIn(8) ? "  " : OneIn(4) ? "" : " ";
    absl::StrAppend(&text, Fragment(), between);
  }
  if (!OneIn(3) && !text.empty() && text.back() == ' ') {
    text.pop_back();
  }
  return text;
}

std::vector<std::string> OddRecords::Texts(int64_t most) {
  std::vector<std::string> texts;
  for (int64_t i = Below(most + 1); i > 0; --i) {
    texts.push_back(Text());
  }
  return texts;
}

json OddRecords::Wikihop() {
  std::vector<std::string> candidates = Texts(4);
  candidates.push_back(Fragment());
  json record = {{"id", Text()},
                 {"query", Fragment() + " " + Text()},
                 {"candidates", candidates},
                 {"supports", Texts(4)}};
  if (!OneIn(4)) {
    record["answer"] = Of(candidates);
  }
  return record;
}

json OddRecords::Hotpotqa() {
  json context = json::array();
  json facts = json::array();
  std::vector<std::string> answers = {"yes", "no", Text(), Fragment()};
  for (int64_t p = Below(5); p > 0; --p) {
    const std::string title = Text();
    std::vector<std::string> sentences = Texts(5);
    if (OneIn(2)) {  // which rarely fits, while those behind it do
      sentences.insert(sentences.begin(), absl::StrJoin(Texts(12), " "));
    }
    context.push_back({title, sentences});
    if (OneIn(2)) {
      facts.push_back({title, Below(6)});
    }
    answers.push_back(title);
    answers.insert(answers.end(), sentences.begin(), sentences.end());
    answers.push_back(Of(OddRecordWords()));
  }
  json record = {{"_id", Text()},
                 {"question", Text()},
                 {"context", context},
                 {"supporting_facts", facts}};
  if (!OneIn(6)) {
    record["answer"] = Of(answers);
  }
  return record;
}

json OddRecords::Features() {
  json features = json::array();
  for (int64_t i = 0; i < 20; ++i) {
    const bool is_flag = i % 10 == 9 || (i % 10 >= 4 && i % 10 < 8);
    features.push_back(is_flag ? static_cast<double>(Below(2))
                               : Of<double>({-1e30, -50, .5, 12, 14.5, 1e30}));
  }
  return features;
}

json OddRecords::KeyPhrases(const std::vector<std::string>& texts) {
  json phrases = json::array();
  phrases.push_back({Of(OddRecordWords())});
  for (int64_t k = Below(4); k > 0; --k) {
    const std::string phrase = OneIn(3)   ? ""
                               : OneIn(2) ? Of(texts)
                                          : Fragment();
    phrases.push_back(std::vector<std::string>(absl::StrSplit(phrase, ' ')));
  }
  return phrases;
}

json OddRecords::Openkp() {
  json elements = json::array();
  std::vector<std::string> texts;
  int64_t words = 0;
  const auto add = [&](const std::string& text, int64_t size) {
    elements.push_back({{"Id", 7},
                        {"text", text},
                        {"feature", Features()},
                        {"start_idx", words},
                        {"end_idx", words + size}});
    words += size;
  };
  for (int64_t v = 1 + Below(5); v > 0; --v) {
    texts.push_back(Text());
    const std::vector<std::string> split = absl::StrSplit(texts.back(), ' ');
    add(texts.back(), static_cast<int64_t>(split.size()));
    if (OneIn(5)) {
      add("", 0);
    }
  }
  json record = {{"url", OneIn(50) ? std::string(1001, 'u') : Text()},
                 {"text", absl::StrJoin(texts, " ")},
                 {"VDOM", elements.dump()}};
  if (!OneIn(6)) {
    record["KeyPhrases"] = KeyPhrases(texts);
  }
  return record;
}

json OddRecords::Span(int64_t tokens) {
  const int64_t start = tokens > 0 ? Below(tokens) : -1;
  const int64_t end = tokens > 0 ? start + 1 + Below(tokens - start) : -1;
  return {{"start_token", start}, {"end_token", end}};
}

json OddRecords::Annotation(int64_t tokens) {
  json shorts = json::array();
  for (int64_t i = Below(3); i > 0 && tokens > 0; --i) {
    shorts.push_back(Span(tokens));
  }
  return {{"long_answer", Span(OneIn(3) ? 0 : tokens)},
          {"short_answers", shorts},
          {"yes_no_answer", OneIn(4) ? "YES" : "NONE"}};
}

void OddRecords::AddNqDocument(int64_t tokens, json* record) {
  if (OneIn(3)) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < tokens; ++i) {
      texts.push_back(Fragment());
    }
    (*record)["document_text"] = absl::StrJoin(texts, " ");
    return;
  }
  json list = json::array();
  for (int64_t i = 0; i < tokens; ++i) {
    list.push_back(
        {{"token", OneIn(5) ? Text() : Fragment()}, {"html_token", OneIn(4)}});
  }
  (*record)["document_tokens"] = list;
}

json OddRecords::Classify() {
  json record = {{"text", Text()}};
  if (OneIn(2)) {
    record["id"] = Text();
  }
  if (OneIn(2)) {
    record["text_b"] = Text();
  }
  if (!OneIn(4)) {
    record["label"] = OneIn(8)   ? json(Fragment())
                      : OneIn(6) ? json(Below(5))
                      : OneIn(2) ? json("yes")
                                 : json("no");
  }
  return record;
}

json OddRecords::Glue() {
  json record = {{"task", OneIn(20) ? "wnli" : "rte"},
                 {"id", absl::StrCat(Below(5))},
                 {"text", Text()}};
  if (!OneIn(4)) {
    record["text_b"] = Text();
  }
  if (!OneIn(4)) {
    record["label"] = OneIn(8)   ? Fragment()
                      : OneIn(2) ? "entailment"
                                 : "not_entailment";
  }
  return record;
}

json OddRecords::Squad() {
  const std::string context = OneIn(8) ? Text() : absl::StrJoin(Texts(6), " ");
  json answers = json::array();
  for (int64_t i = OneIn(4) ? Below(3) : 1; i > 0; --i) {
    answers.push_back({{"text", OneIn(2) ? Fragment() : Text()},
                       {"answer_start", Below(20) - 2}});
  }
  json record = {{"id", Text()}, {"question", Text()}, {"context", context}};
  if (!OneIn(6)) {
    record["answers"] = answers;
  }
  if (OneIn(2)) {
    record["is_impossible"] = OneIn(3);
  }
  return record;
}

json OddRecords::Nq() {
  const int64_t tokens = Below(30);
  json record = {{"example_id", Below(1000)}, {"question_text", Text()}};
  AddNqDocument(tokens, &record);
  json candidates = json::array();
  for (int64_t i = Below(5); i > 0 && tokens > 0; --i) {
    json candidate = Span(tokens);
    candidate["top_level"] = !OneIn(4);
    candidates.push_back(candidate);
  }
  record["long_answer_candidates"] = candidates;
  json annotations = json::array();
  for (int64_t i = Below(4); i > 0; --i) {
    annotations.push_back(Annotation(tokens));
  }
  record["annotations"] = annotations;
  return record;
}

}  // namespace etc
