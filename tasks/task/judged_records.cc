#include "tasks/task/judged_records.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "nlohmann/json.hpp"

namespace etc {
namespace {

using Json = nlohmann::json;

bool IsListOfTexts(const Json& json) {
  return json.is_array() && !json.empty() &&
         std::all_of(json.begin(), json.end(),
                     [](const Json& value) { return value.is_string(); });
}

// Adds the texts in `json`. A list of texts within a list is one text, of
// words. `depth` is that of the objects to look into.
void AddTexts(const Json& json, int depth, bool in_list,
              std::vector<std::string>* texts) {
  if (json.is_string()) {
    texts->push_back(json.get<std::string>());
  } else if (in_list && IsListOfTexts(json)) {
    texts->push_back(
        absl::StrJoin(json, " ", [](std::string* joined, const Json& word) {
          joined->append(word.get<std::string>());
        }));
  } else if (json.is_array()) {
    for (const Json& value : json) {
      AddTexts(value, depth, /*in_list=*/true, texts);
    }
  } else if (json.is_object() && depth > 0) {
    for (const Json& value : json) {
      AddTexts(value, depth - 1, /*in_list=*/false, texts);
    }
  }
}

// Leaves out answers that stand nowhere: a "no" in a text is none.
void DropYesAndNo(std::vector<std::string>* texts) {
  std::erase_if(*texts, [](const std::string& text) {
    return text == "yes" || text == "no";
  });
}

std::vector<std::string> TextsIn(const Json& json, int depth) {
  std::vector<std::string> texts;
  AddTexts(json, depth, /*in_list=*/false, &texts);
  DropYesAndNo(&texts);
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

// A field as people read it: a text as it is, texts of a list on lines of their
// own where `separator` says so.
std::string FieldText(const Json& json, const std::string& separator) {
  std::vector<std::string> texts;
  AddTexts(json, /*depth=*/8, /*in_list=*/false, &texts);
  return texts.empty() ? JsonText(json) : absl::StrJoin(texts, separator);
}

int64_t CodePoints(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  });
}

// The first bytes of `text`, whole characters.
std::string Cut(std::string text, size_t bytes) {
  if (text.size() <= bytes) {
    return text;
  }
  while (bytes > 0 &&
         (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) {
    --bytes;
  }
  text.resize(bytes);
  return text + " ...";
}

// An object of answers for people.
std::string AnswerText(Json json) {
  if (json.is_object()) {
    json.erase("id");
    if (json.size() == 1 && json.begin()->is_string()) {
      return json.begin()->get<std::string>();
    }
  }
  return JsonText(json);
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True of a field that the reader of a file adds for the task, such as the
// lines of words ("\nlines"): no file has such a name.
bool IsOfReader(const std::string& name) { return name.starts_with('\n'); }

struct JudgedDocument {
  std::string field;
  std::string text;
};

// The document of a record, as JudgedFields has it.
JudgedDocument DocumentOf(const Json& record, const JudgedFields& fields) {
  for (const std::string& name : fields.documents) {
    const auto field = record.find(name);
    if (field == record.end()) {
      continue;
    }
    const bool is_of_words =
        field->is_array() && !field->empty() && field->front().is_object();
    std::string text = FieldText(*field, is_of_words ? " " : "\n");
    if (!text.empty()) {
      return {.field = name, .text = std::move(text)};
    }
  }
  JudgedDocument longest;
  for (const auto& [name, value] : record.items()) {
    std::string text = FieldText(value, "\n");
    if (!IsOfReader(name) && !Has(fields.answers, name) &&
        text.size() > longest.text.size()) {
      longest = {.field = name, .text = std::move(text)};
    }
  }
  return longest;
}

// The texts of a prediction.
std::vector<std::string> PredictedTexts(const Json& predicted) {
  std::vector<std::string> texts;
  if (predicted.is_object()) {
    for (const auto& [name, value] : predicted.items()) {
      // Objects hold other candidates and probabilities.
      if (name != "id" && !value.is_object()) {
        AddTexts(value, /*depth=*/0, /*in_list=*/false, &texts);
      }
    }
  }
  DropYesAndNo(&texts);
  return texts;
}

bool IsWordByte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
         static_cast<unsigned char>(byte) >= 0x80;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> FindWords(
    absl::string_view text, const std::vector<std::string>& words) {
  const std::string lower = absl::AsciiStrToLower(text);
  std::vector<std::pair<size_t, size_t>> places;
  for (const std::string& word : words) {
    const std::string wanted = absl::AsciiStrToLower(word);
    if (wanted.size() < 2) {
      continue;
    }
    for (size_t at = lower.find(wanted); at != std::string::npos;
         at = lower.find(wanted, at + 1)) {
      const size_t end = at + wanted.size();
      const bool begins =
          at == 0 || !IsWordByte(lower[at - 1]) || !IsWordByte(wanted.front());
      const bool ends = end == lower.size() || !IsWordByte(lower[end]) ||
                        !IsWordByte(wanted.back());
      if (begins && ends) {
        places.emplace_back(at, end);
      }
    }
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<std::pair<size_t, size_t>> apart;
  for (const auto& place : places) {
    if (apart.empty() || place.first >= apart.back().second) {
      apart.push_back(place);
    }
  }
  return apart;
}

JudgedRecord JudgeRecord(std::string id, const Json& record,
                         const JudgedFields& fields,
                         const std::string& prediction) {
  JudgedRecord judged = {.id = std::move(id)};
  Json gold = Json::object();
  Json gold_texts = Json::object();
  for (const auto& [name, value] : record.items()) {
    if (Has(fields.answers, name)) {
      gold[name] = value;
      if (Has(fields.answer_texts, name)) {
        gold_texts[name] = value;
      }
    }
  }
  const auto [document_field, document] = DocumentOf(record, fields);
  std::string others;
  for (const auto& [name, value] : record.items()) {
    const bool is_id = value.is_string() && value == judged.id;
    if (name != document_field && !is_id && !IsOfReader(name) &&
        !gold.contains(name) &&
        FieldText(value, "\n").size() <= document.size()) {
      absl::StrAppend(&others, name, ": ", Cut(FieldText(value, " | "), 600),
                      "\n");
    }
  }
  judged.gold = AnswerText(gold);
  judged.gold_texts = TextsIn(gold_texts, /*depth=*/8);
  const Json predicted = Json::parse(prediction, /*cb=*/nullptr,
                                     /*allow_exceptions=*/false);
  judged.prediction =
      predicted.is_discarded() ? prediction : AnswerText(predicted);
  if (!fields.answer_texts.empty()) {
    judged.predicted_texts = PredictedTexts(predicted);
  }
  judged.length = CodePoints(document);
  for (const std::string& text : judged.gold_texts) {
    const auto places = FindWords(document, {text});
    if (!places.empty()) {
      judged.evidence =
          std::max(judged.evidence, static_cast<double>(places.front().first) /
                                        static_cast<double>(document.size()));
    }
  }
  judged.text = Cut(absl::StrCat(others, "\n", document), kMostJudgedBytes);
  return judged;
}

}  // namespace etc
