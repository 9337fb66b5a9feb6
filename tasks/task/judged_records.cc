#include "tasks/task/judged_records.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "tasks/text/unicode.h"

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

// The texts in a field.
std::vector<std::string> TextsOfField(const Json& json) {
  std::vector<std::string> texts;
  AddTexts(json, /*depth=*/8, /*in_list=*/false, &texts);
  return texts;
}

std::vector<std::string> TextsIn(const Json& json) {
  std::vector<std::string> texts = TextsOfField(json);
  DropYesAndNo(&texts);
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

// Returns true for lists and objects of numbers or of nothing.
bool IsWithoutTexts(const Json& json) {
  return json.is_structured() && TextsOfField(json).empty();
}

// A field as people read it: a text as it is, texts of a list on lines of their
// own where `separator` says so.
std::string FieldText(const Json& json, const std::string& separator) {
  const std::vector<std::string> texts = TextsOfField(json);
  return texts.empty() ? JsonText(json) : absl::StrJoin(texts, separator);
}

// The byte at which a character begins, counted from 0; text.size(): the text
// has no such character.
size_t ByteOfCharacter(absl::string_view text, int64_t character) {
  size_t at = 0;
  while (at < text.size() && (!BeginsCharacter(text[at]) || character-- != 0)) {
    ++at;
  }
  return at;
}

// Returns true for answers with a text: [{"text": "Oslo", "answer_start": 7},
// ...].
bool AreObjectsWithText(const Json& json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [](const Json& value) {
           return value.is_object() && value.contains("text") &&
                  value["text"].is_string();
         });
}

// The texts of such answers, each once.
Json TextsOf(const Json& answers) {
  Json texts = Json::array();
  for (const Json& answer : answers) {
    if (std::find(texts.begin(), texts.end(), answer["text"]) == texts.end()) {
      texts.push_back(answer["text"]);
    }
  }
  return texts;
}

// An object of answers for people (JudgedRecord::gold).
std::string AnswerText(Json json) {
  if (!json.is_object()) {
    return JsonText(json);
  }
  json.erase("id");
  for (auto field = json.begin(); field != json.end();) {
    if (AreObjectsWithText(*field)) {
      *field = TextsOf(*field);
    }
    field = field->empty() ? json.erase(field) : std::next(field);
  }
  const bool has_one = json.size() == 1;
  const std::string text =
      has_one && (json.begin()->is_string() || IsListOfTexts(*json.begin()))
          ? FieldText(*json.begin(), " | ")
          : JsonText(json);
  return json.empty() || text.empty() ? "none" : text;
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
        text.size() > longest.text.size() && !IsWithoutTexts(value)) {
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

// The places that the answers of a record state, in a document that has their
// texts there.
TextPlaces StatedPlaces(const Json& answers, absl::string_view document) {
  TextPlaces places;
  for (const Json& list : answers) {
    if (!AreObjectsWithText(list)) {
      continue;
    }
    for (const Json& answer : list) {
      const auto start = answer.find("answer_start");
      if (start == answer.end() || !start->is_number_integer()) {
        continue;
      }
      const auto& text = answer["text"].get_ref<const std::string&>();
      const size_t begin = ByteOfCharacter(document, start->get<int64_t>());
      if (!text.empty() && document.substr(begin, text.size()) == text) {
        places.emplace_back(begin, begin + text.size());
      }
    }
  }
  return WithoutOverlaps(std::move(places));
}

// Finds the gold in the text of a record, which ends with its document.
// `answers` has the fields of JudgedFields::answer_texts alone.
void FindGold(const Json& answers, absl::string_view document,
              JudgedRecord* judged) {
  const auto note = [&](const TextPlaces::value_type& place) {
    judged->evidence =
        std::max(judged->evidence, static_cast<double>(place.first) /
                                       static_cast<double>(document.size()));
  };
  const size_t before = judged->text.size() - document.size();
  for (const auto& place : StatedPlaces(answers, document)) {
    note(place);
    judged->gold_places.emplace_back(before + place.first,
                                     before + place.second);
  }
  if (!judged->gold_places.empty()) {
    return;
  }
  for (const std::string& text : judged->gold_texts) {
    const TextPlaces places = FindWords(document, {text});
    if (!places.empty()) {
      note(places.front());
    }
  }
  judged->gold_places = FindWords(judged->text, judged->gold_texts);
}

bool IsWordByte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
         static_cast<unsigned char>(byte) >= 0x80;
}

}  // namespace

TextPlaces FindWords(absl::string_view text,
                     const std::vector<std::string>& words) {
  const std::string lower = absl::AsciiStrToLower(text);
  TextPlaces places;
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
  return WithoutOverlaps(std::move(places));
}

TextPlaces WithoutOverlaps(TextPlaces places) {
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  TextPlaces apart;
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
        !gold.contains(name) && !IsWithoutTexts(value) &&
        FieldText(value, "\n").size() <= document.size()) {
      absl::StrAppend(&others, name, ": ",
                      Shortened(FieldText(value, " | "), 600), "\n");
    }
  }
  const bool has_texts = !fields.answer_texts.empty();
  const auto shown = [&](Json answers) {
    if (fields.show_answers != nullptr) {
      fields.show_answers(record, &answers);
    }
    return AnswerText(std::move(answers));
  };
  judged.gold = shown(has_texts ? gold_texts : gold);
  judged.gold_texts = TextsIn(gold_texts);
  const absl::StatusOr<Json> predicted = ParseJson(prediction, judged.id);
  judged.prediction = predicted.ok() ? shown(*predicted) : prediction;
  if (has_texts && predicted.ok()) {
    judged.predicted_texts = PredictedTexts(*predicted);
  }
  judged.length = CountCodePoints(document);
  judged.text = absl::StrCat(others, "\n", document);
  FindGold(gold_texts, document, &judged);
  return judged;
}

}  // namespace etc
