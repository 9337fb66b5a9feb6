#include "etc/weights/text_marks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "nlohmann/json.hpp"

namespace etc {
namespace {

using nlohmann::json;

// The field of an object, or null.
const json& FieldOrNull(const json& object, const char* name) {
  static const json* const null = new json();
  const auto found = object.find(name);
  return found == object.end() ? *null : *found;
}

// The id of a piece, of the model or added; null if there is none.
json IdOfPiece(const json& file, const json& piece) {
  const json& vocabulary = FieldOrNull(FieldOrNull(file, "model"), "vocab");
  if (vocabulary.is_object()) {
    const auto found = vocabulary.find(piece.get_ref<const std::string&>());
    if (found != vocabulary.end()) {
      return *found;
    }
  }
  if (vocabulary.is_array()) {  // Unigram's pieces with their scores
    for (size_t id = vocabulary.size(); id-- > 0;) {
      const json& entry = vocabulary[id];
      if (entry.is_array() && !entry.empty() && entry[0] == piece) {
        return id;
      }
    }
  }
  for (const json& token : FieldOrNull(file, "added_tokens")) {
    if (FieldOrNull(token, "content") == piece) {
      return FieldOrNull(token, "id");
    }
  }
  return nullptr;
}

// --- Templates ---------------------------------------------------------------

json TextPart(const char* text, int type) {
  return {{"Sequence", {{"id", text}, {"type_id", type}}}};
}

json MarkPart(const std::string& name, int type) {
  return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
}

// The name of a special piece of a template; empty for a text.
std::string MarkIn(const json& part) {
  const json& name = FieldOrNull(FieldOrNull(part, "SpecialToken"), "id");
  return name.is_string() ? name.get<std::string>() : "";
}

bool HasMarks(const json& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const json& part) { return !MarkIn(part).empty(); });
}

// The types are those that tasks give to the pieces of two texts.
json PairTemplate(const std::string& first, const std::string& last,
                  size_t num_between) {
  json parts = json::array({MarkPart(first, 0), TextPart("A", 0)});
  for (size_t i = 0; i < num_between; ++i) {
    parts.push_back(MarkPart(last, 0));
  }
  parts.push_back(TextPart("B", 1));
  parts.push_back(MarkPart(last, 1));
  return parts;
}

json ProcessorOf(const TextMarkNames& names, const json& first_id,
                 const json& last_id) {
  json specials;
  for (const auto& [name, id] :
       {std::pair(names.first, first_id), std::pair(names.last, last_id)}) {
    specials[name] = {{"id", name},
                      {"ids", json::array({id})},
                      {"tokens", json::array({name})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", json::array({MarkPart(names.first, 0), TextPart("A", 0),
                                  MarkPart(names.last, 0)})},
          {"pair", PairTemplate(names.first, names.last, names.num_between)},
          {"special_tokens", std::move(specials)}};
}

// The part of a post-processor that puts pieces around texts, or may do so;
// null if it has none.
json* PartWithMarks(json* processor) {
  const json& type = FieldOrNull(*processor, "type");
  if (processor->is_null() || type == "ByteLevel") {
    return nullptr;
  }
  if (type == "TemplateProcessing") {
    return HasMarks(FieldOrNull(*processor, "single")) ||
                   HasMarks(FieldOrNull(*processor, "pair"))
               ? processor
               : nullptr;
  }
  if (type != "Sequence") {
    return processor;
  }
  const auto parts = processor->find("processors");
  if (parts != processor->end()) {
    for (json& part : *parts) {
      if (json* const found = PartWithMarks(&part)) {
        return found;
      }
    }
  }
  return nullptr;
}

// Writes the pair of a template that has pieces around one text alone.
bool WritePair(json* processor) {
  const json& single = FieldOrNull(*processor, "single");
  if (FieldOrNull(*processor, "type") != "TemplateProcessing" ||
      HasMarks(FieldOrNull(*processor, "pair")) || !single.is_array() ||
      single.size() != 3 || MarkIn(single[0]).empty() ||
      MarkIn(single[2]).empty()) {
    return false;
  }
  (*processor)["pair"] =
      PairTemplate(MarkIn(single[0]), MarkIn(single[2]), /*num_between=*/1);
  return true;
}

}  // namespace

bool IsByteLevel(const json& splitter) {
  const json& type = FieldOrNull(splitter, "type");
  if (type != "Sequence") {
    return type == "ByteLevel";
  }
  const json& parts = FieldOrNull(splitter, "pretokenizers");
  return std::any_of(parts.begin(), parts.end(), IsByteLevel);
}

std::optional<TextMarkNames> UsualTextMarks(
    absl::FunctionRef<bool(const char*)> has_piece, bool is_byte_level) {
  for (const TextMarkNames& names :
       {TextMarkNames{.first = "[CLS]", .last = "[SEP]"},
        TextMarkNames{.first = "<s>",
        .last = "</s>",
        .num_between = is_byte_level ? size_t{2} : size_t{1}},
        TextMarkNames{.first = "<unused_63>", .last = "<unused_2>"}}) {
    if (has_piece(names.first) && has_piece(names.last)) {
      return names;
    }
  }
  return std::nullopt;
}

bool WriteTextMarks(json* file) {
  if (!file->is_object()) {
    return false;
  }
  json processor = FieldOrNull(*file, "post_processor");
  if (json* const part = PartWithMarks(&processor)) {
    if (!WritePair(part)) {
      return false;
    }
    (*file)["post_processor"] = std::move(processor);
    return true;
  }
  const std::optional<TextMarkNames> names = UsualTextMarks(
      [file](const char* piece) { return !IdOfPiece(*file, piece).is_null(); },
      IsByteLevel(FieldOrNull(*file, "pre_tokenizer")));
  if (!names.has_value()) {
    return false;
  }
  json added = ProcessorOf(*names, IdOfPiece(*file, names->first),
                           IdOfPiece(*file, names->last));
  (*file)["post_processor"] =
      processor.is_null() ||
              FieldOrNull(processor, "type") == "TemplateProcessing"
          ? std::move(added)
          : json({{"type", "Sequence"},
                  {"processors",
                   json::array({std::move(processor), std::move(added)})}});
  return true;
}

}  // namespace etc
