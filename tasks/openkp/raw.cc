#include "tasks/openkp/raw.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json_reader.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/openkp/plain_document.h"
#include "tasks/openkp/task.h"
#include "tasks/task/official_json.h"

namespace etc {
namespace {

constexpr size_t kNumbersPerNode = 10;

// One element, and fields that are only checked.
struct RawElement {
  OpenkpElement element;
  int64_t id = 0;
  std::string text;
};

// Ten numbers, of which `numbers` is the first. The width comes before y
// (doc/openkp.md 11, trap 1).
OpenkpNode NodeOf(const double* numbers) {
  return {.x = numbers[0],
          .width = numbers[1],
          .y = numbers[2],
          .height = numbers[3],
          .is_block = numbers[4] != 0,
          .is_inline = numbers[5] != 0,
          .in_heading = numbers[6] != 0,
          .is_leaf = numbers[7] != 0,
          .font_size = numbers[8],
          .is_bold = numbers[9] != 0};
}

bool IsPosition(size_t index) { return index % kNumbersPerNode < 4; }
bool IsFlag(size_t index) {
  const size_t of_node = index % kNumbersPerNode;
  return of_node >= 4 && of_node != 8;
}

void ReadFeature(JsonObjectReader& reader, RawElement* raw,
                 bool* has_integer_coordinates) {
  const nlohmann::json* feature = reader.Raw("feature", /*required=*/true);
  if (feature == nullptr) {
    return;
  }
  if (!feature->is_array() || feature->size() != 2 * kNumbersPerNode) {
    reader.Fail("feature", "should be a list of 20 numbers");
    return;
  }
  double numbers[2 * kNumbersPerNode] = {};
  for (size_t i = 0; i < feature->size(); ++i) {
    const nlohmann::json& number = (*feature)[i];
    if (!number.is_number()) {
      reader.Fail(absl::StrCat("feature[", i, "]"), "should be a number");
      return;
    }
    numbers[i] = number.get<double>();
    if (IsFlag(i) && numbers[i] != 0 && numbers[i] != 1) {
      reader.Fail(absl::StrCat("feature[", i, "]"),
                  absl::StrCat("should be 0 or 1, but is ", numbers[i]));
      return;
    }
    *has_integer_coordinates |= IsPosition(i) && !number.is_number_float();
  }
  raw->element.node = NodeOf(numbers);
  raw->element.parent = NodeOf(numbers + kNumbersPerNode);
}

absl::StatusOr<RawElement> ReadElement(const nlohmann::json& json,
                                       const std::string& where,
                                       bool* has_integer_coordinates) {
  const auto read = [&](JsonObjectReader& reader, RawElement* raw) {
    reader.Required("Id", &raw->id);
    reader.Required("text", &raw->text);
    reader.Required("start_idx", &raw->element.first_word);
    reader.Required("end_idx", &raw->element.end_word);
    ReadFeature(reader, raw, has_integer_coordinates);
  };
  return ReadObject<RawElement>(json, where, read);
}

// Checks elements against the text, from left to right (doc/openkp.md 2).
class ElementChecker {
 public:
  explicit ElementChecker(const std::vector<absl::string_view>& words)
      : words_(words) {}

  absl::Status Check(const RawElement& raw, const std::string& where) {
    const auto& [element, id, text] = raw;
    const auto num_words = static_cast<int64_t>(words_.size());
    if (element.first_word != next_word_) {
      return Error(where, "start_idx", next_word_, element.first_word);
    }
    if (element.end_word < element.first_word || element.end_word > num_words) {
      return InvalidArgument(where, ".end_idx should be in [",
                             element.first_word, ", ", num_words, "], but is ",
                             element.end_word);
    }
    if (num_checked_ > 0 && id_ != id) {
      return Error(where, "Id", id_, id);
    }
    if (const std::string expected = TextOf(element); text != expected) {
      return InvalidArgument(where, ".text should be that of words ",
                             element.first_word, " to ", element.end_word, ", ",
                             QuotedName(expected), ", but is ",
                             QuotedName(text));
    }
    next_word_ = element.end_word;
    id_ = id;
    ++num_checked_;
    return absl::OkStatus();
  }

  absl::Status Finish(const std::string& where) const {
    const auto num_words = static_cast<int64_t>(words_.size());
    return next_word_ == num_words ? absl::OkStatus()
                                   : Error(where, "end_idx of the last element",
                                           num_words, next_word_);
  }

 private:
  static absl::Status Error(const std::string& where, absl::string_view field,
                            int64_t expected, int64_t found) {
    return InvalidArgument(where, ".", field, " should be ", expected,
                           ", but is ", found);
  }

  std::string TextOf(const OpenkpElement& element) const {
    std::string text;
    for (int64_t w = element.first_word; w < element.end_word; ++w) {
      absl::StrAppend(&text, w > element.first_word ? " " : "",
                      words_[static_cast<size_t>(w)]);
    }
    return text;
  }

  const std::vector<absl::string_view>& words_;
  int64_t next_word_ = 0;
  int64_t id_ = 0;  // of all elements checked
  int64_t num_checked_ = 0;
};

// `vdom` is JSON within JSON (doc/openkp.md 11, trap 2). Sets
// `has_integer_coordinates` of the record.
absl::StatusOr<std::vector<OpenkpElement>> ReadElements(
    const std::string& vdom, const std::string& where, OpenkpRecord* record) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(vdom, where));
  if (!json.is_array() || json.empty()) {
    return InvalidArgument(where,
                           " should hold a list of at least one element");
  }
  const std::vector<absl::string_view> words = OpenkpWords(record->text);
  ElementChecker checker(words);
  const auto read =
      [&](const nlohmann::json& element,
          const std::string& place) -> absl::StatusOr<OpenkpElement> {
    ETC_ASSIGN_OR_RETURN(
        const RawElement raw,
        ReadElement(element, place, &record->has_integer_coordinates));
    ETC_RETURN_IF_ERROR(checker.Check(raw, place));
    return raw.element;
  };
  ETC_ASSIGN_OR_RETURN(std::vector<OpenkpElement> elements,
                       ReadList<OpenkpElement>(json, where, "elements", read));
  ETC_RETURN_IF_ERROR(checker.Finish(where));
  return elements;
}

// The field "KeyPhrases"; nothing if it is absent.
std::optional<std::vector<std::vector<std::string>>> ReadKeyPhraseLists(
    JsonObjectReader& reader, bool required) {
  constexpr char kField[] = "KeyPhrases";
  const nlohmann::json* phrases = reader.Raw(kField, required);
  if (phrases == nullptr) {
    return std::nullopt;
  }
  std::vector<std::vector<std::string>> lists;
  if (!phrases->is_array()) {
    reader.Fail(kField, "should be a list of lists of words");
    return lists;
  }
  for (const nlohmann::json& phrase : *phrases) {
    const bool is_list =
        phrase.is_array() && std::all_of(phrase.begin(), phrase.end(),
                                         [](const nlohmann::json& word) {
                                           return word.is_string();
                                         });
    if (!is_list) {
      reader.Fail(absl::StrCat(kField, "[", lists.size(), "]"),
                  "should be a list of words");
      return lists;
    }
    lists.push_back(phrase.get<std::vector<std::string>>());
  }
  return lists;
}

}  // namespace

std::vector<absl::string_view> OpenkpWords(absl::string_view text) {
  return absl::StrSplit(text, ' ');
}

void Openkp::ReadRecord(JsonObjectReader& reader, Record* record) const {
  if (!reader.Has("VDOM")) {
    if (!options().has_visual_features()) {
      ReadPlainOpenkpRecord(reader, options().input.split_sentences, record);
      return;
    }
    // The record is no page either.
    reader.Fail("VDOM",
                "is missing; documents without it need "
                "openkp.use_visual_features_in_long and "
                "use_visual_features_in_global to be false");
    return;
  }
  std::string vdom;
  reader.Required("url", &record->id);
  reader.Required("text", &record->text);
  reader.Required("VDOM", &vdom);
  record->key_phrases = ReadKeyPhraseLists(reader, /*required=*/false);
  if (reader.ok()) {
    reader.Assign(ReadElements(vdom, reader.Where("VDOM"), record),
                  &record->elements);
  }
}

absl::StatusOr<OpenkpPhraseLists> ParseOpenkpPhraseLists(
    absl::string_view json, const std::string& where) {
  const auto read = [](JsonObjectReader& reader, OpenkpPhraseLists* lists) {
    reader.Required("url", &lists->url);
    if (auto phrases = ReadKeyPhraseLists(reader, /*required=*/true)) {
      lists->phrases = *std::move(phrases);
    }
  };
  return ParseObject<OpenkpPhraseLists>(json, where, read);
}

}  // namespace etc
