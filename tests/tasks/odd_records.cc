#include "tests/tasks/odd_records.h"

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

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

std::map<std::string, OddTask>& OddTasks() {
  static auto* const tasks = new std::map<std::string, OddTask>();
  return *tasks;
}

}  // namespace

std::vector<std::string> OddRecordWords() {
  return {"green", "tea", "norway", "yes", "no", "the", "jane", "roe", "ab"};
}

bool OddTask::Register(const std::string& name, const OddTask& task) {
  return OddTasks().emplace(name, task).second;
}

const OddTask& OddTask::Of(const std::string& name) {
  return OddTasks().at(name);
}

std::string OddRecords::Record(const OddTask& task) {
  json record = task.record(this);
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

}  // namespace etc
