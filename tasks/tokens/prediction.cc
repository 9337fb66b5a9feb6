// Logits to spans, and files of them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "tasks/data/data_files.h"
#include "tasks/data/id_places.h"
#include "tasks/task/label_table.h"
#include "tasks/task/official_json.h"
#include "tasks/text/text_folding.h"
#include "tasks/tokens/conll.h"
#include "tasks/tokens/task.h"
#include "tasks/tokens/words.h"

namespace etc {
namespace {

// The class of a unit with the largest logit, of equals the first, and its
// share in the softmax.
struct UnitClass {
  int64_t best = kOutsideClass;
  double probability = 0;
};

UnitClass ClassOfRow(absl::Span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(double{logit} - double{*best});
  }
  return {.best = best - logits.begin(), .probability = 1 / sum};
}

// Units that make a span, both included.
struct UnitSpan {
  int64_t label = 0;
  size_t first = 0;
  size_t last = 0;
  double probability = 1;
};

// The sentence of each word of a text that is split already; empty for others.
std::vector<size_t> SentencesOfWords(const TokensExample& example) {
  std::vector<size_t> sentences;
  for (size_t s = 0; s < example.sentence_sizes.size(); ++s) {
    sentences.insert(sentences.end(),
                     static_cast<size_t>(example.sentence_sizes[s]), s);
  }
  return sentences;
}

// Joins units as conlleval joins tags, those of one sentence; if `is_strict`,
// as seqeval's scheme IOB2 does, where the rest of a span without its beginning
// is none.
std::vector<UnitSpan> JoinUnits(const TokensExample& example,
                                const std::vector<UnitClass>& classes,
                                bool is_strict) {
  const std::vector<size_t> sentences = SentencesOfWords(example);
  // The first words of a sentence may have no pieces, and so no unit.
  const auto begins_sentence = [&](size_t i) {
    const auto of = [&](int64_t word) {
      return sentences[static_cast<size_t>(word)];
    };
    return !sentences.empty() && of(example.units[i].first_word) !=
                                     of(example.units[i - 1].last_word);
  };
  std::vector<UnitSpan> spans;
  bool is_open = false;
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto [best, probability] = classes[i];
    if (best == kOutsideClass) {
      is_open = false;
      continue;
    }
    const bool goes_on = is_open && IsInsideClass(best) &&
                         spans.back().label == LabelOfClass(best) &&
                         !begins_sentence(i);
    if (!goes_on && is_strict && IsInsideClass(best)) {
      is_open = false;
      continue;
    }
    if (!goes_on) {
      spans.push_back({.label = LabelOfClass(best), .first = i});
      is_open = true;
    }
    spans.back().last = i;
    spans.back().probability = std::min(spans.back().probability, probability);
  }
  return spans;
}

// The tags of all words, by sentence.
std::vector<std::vector<std::string>> TagsOfWords(
    const TokensExample& example, const std::vector<UnitSpan>& spans,
    const TokensOptions& options) {
  std::vector<std::string> tags(example.words.size(), "O");
  for (const UnitSpan& span : spans) {
    const auto first =
        static_cast<size_t>(example.units[span.first].first_word);
    const auto last = static_cast<size_t>(example.units[span.last].last_word);
    for (size_t word = first; word <= last; ++word) {
      tags[word] = TagOfClass(
          word == first ? BeginClass(span.label) : InsideClass(span.label),
          options);
    }
  }
  std::vector<std::vector<std::string>> of_sentences;
  auto next = tags.begin();
  for (const int64_t size : example.sentence_sizes) {
    of_sentences.emplace_back(next, next + size);
    next += size;
  }
  return of_sentences;
}

std::string LineOfTokens(const std::string& id,
                         const TokensPrediction& prediction) {
  std::string line = absl::StrCat("{\"id\":", JsonAsciiText(nlohmann::json(id)),
                                  ",\"spans\":[");
  const char* separator = "";
  for (const auto& [span, text, probability] : prediction.spans) {
    absl::StrAppend(&line, separator, "{\"start\":", span.start,
                    ",\"end\":", span.end,
                    ",\"label\":", JsonAsciiText(nlohmann::json(span.label)),
                    ",\"text\":", JsonAsciiText(nlohmann::json(text)),
                    ",\"probability\":", SixDecimals(probability), "}");
    separator = ",";
  }
  line += "]";
  if (!prediction.tags.empty()) {
    absl::StrAppend(
        &line, ",\"tags\":", JsonAsciiText(nlohmann::json(prediction.tags)));
  }
  return line + "}";
}

using TokensLine = std::pair<std::string, TokensPrediction>;

TokensPrediction PredictionOfSpans(std::vector<TokensSpan> spans) {
  TokensPrediction prediction;
  for (TokensSpan& span : spans) {
    prediction.spans.push_back({.span = std::move(span)});
  }
  return prediction;
}

absl::StatusOr<TokensLine> ParseTokensLine(const std::string& text,
                                           const std::string& where) {
  ETC_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where));
  JsonObjectReader fields(json, where);
  TokensLine line;
  fields.Required("id", &line.first);
  fields.Raw("tags", /*required=*/false);
  fields.Raw("truncated", /*required=*/false);
  fields.Raw("spans", /*required=*/true);
  std::optional<std::vector<TokensSpan>> spans;
  ReadTokensSpans(fields, &spans);
  ETC_RETURN_IF_ERROR(fields.Finish());
  if (!spans.has_value()) {
    return InvalidArgument(fields.Where("spans"), " should be a list, but is ",
                           "null");
  }
  for (size_t i = 0; i < spans->size(); ++i) {
    const TokensSpan& span = (*spans)[i];
    if (span.start < 0 || span.start >= span.end) {
      return InvalidArgument(fields.Where("spans"), "[", i,
                             "] should have 0 <= start < end, but is from ",
                             span.start, " to ", span.end);
    }
  }
  line.second = PredictionOfSpans(*std::move(spans));
  return line;
}

// A document without its spans, and where its words stand.
struct PlacedDocument {
  std::string where;
  TokensRecord record;
  // Line of each word, if it is of CoNLL.
  std::vector<int64_t> lines;
};

struct PlacedWord {
  std::string text;
  std::string place;
};

absl::StatusOr<std::vector<PlacedDocument>> PlaceDocuments(
    const Tokens& reader, const std::vector<FileRecord>& records) {
  std::vector<PlacedDocument> documents;
  for (const FileRecord& record : records) {
    if (!record.broken.empty()) {
      continue;
    }
    PlacedDocument& document = documents.emplace_back();
    document.where = record.where;
    ETC_ASSIGN_OR_RETURN(nlohmann::json json,
                         ParseJson(record.json, record.where));
    for (const std::string& field : reader.AnswerFields()) {
      json.erase(field);
    }
    ETC_ASSIGN_OR_RETURN(document.record,
                         reader.RecordFromJson(json, record.where));
    if (!document.record.sentences.empty()) {
      document.lines = json.value(kConllLinesField, document.lines);
    }
  }
  return documents;
}

std::vector<PlacedWord> PlacedWords(const PlacedDocument& document) {
  std::vector<PlacedWord> words;
  for (size_t s = 0; s < document.record.sentences.size(); ++s) {
    const std::vector<std::string>& sentence = document.record.sentences[s];
    for (size_t i = 0; i < sentence.size(); ++i) {
      words.push_back(
          {sentence[i],
           words.size() < document.lines.size()
               ? absl::StrCat(FileOfPlace(document.where), ":",
                              document.lines[words.size()])
               : absl::StrCat(document.where, ".sentences[", s, "][", i, "]")});
    }
  }
  return words;
}

// Compares the words of a prediction with those of a gold document that is
// split already.
absl::Status CompareWords(const PlacedDocument& predicted,
                          const PlacedDocument& gold) {
  const std::vector<PlacedWord> words = PlacedWords(predicted);
  const std::vector<PlacedWord> expected = PlacedWords(gold);
  for (size_t i = 0; i < std::min(words.size(), expected.size()); ++i) {
    if (words[i].text != expected[i].text) {
      return InvalidArgument(words[i].place, " should have the word ",
                             QuotedName(expected[i].text), ", as ",
                             expected[i].place, ", but has ",
                             QuotedName(words[i].text));
    }
  }
  if (words.size() < expected.size()) {
    const PlacedWord& next = expected[words.size()];
    return InvalidArgument(words.back().place, " should stand before the word ",
                           QuotedName(next.text), ", as in ", next.place,
                           ", but is the last one of its document");
  }
  if (words.size() > expected.size()) {
    const PlacedWord& more = words[expected.size()];
    return InvalidArgument(more.place, " should have no word of this document,",
                           " which ends at ", expected.back().place,
                           ", but has ", QuotedName(more.text));
  }
  return absl::OkStatus();
}

// Compares them with a gold text as it is: each word should stand there where
// it stands in the words with blanks between them, which spans refer to.
absl::Status CompareWithText(const PlacedDocument& predicted,
                             const PlacedDocument& gold) {
  const TokensLayout layout = LayOutWords(predicted.record.sentences);
  const std::vector<PlacedWord> words = PlacedWords(predicted);
  const std::vector<int64_t> bytes = BytesOfCodePoints(layout.text);
  const absl::string_view text = gold.record.text;
  const std::vector<int64_t> of_text = BytesOfCodePoints(text);
  const auto last = static_cast<int64_t>(of_text.size()) - 1;
  const auto byte_at = [&](int64_t code_point) {
    return static_cast<size_t>(
        of_text[static_cast<size_t>(std::min(code_point, last))]);
  };
  size_t end = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const int64_t first = CodePointAt(layout.words[i].begin, bytes);
    const size_t begin = byte_at(first);
    end = byte_at(CodePointAt(layout.words[i].end, bytes));
    const absl::string_view part = text.substr(begin, end - begin);
    if (part != words[i].text) {
      return InvalidArgument(words[i].place, " should have the word ",
                             QuotedName(part), ", as ", gold.where,
                             ".text from character ", first, " on, but has ",
                             QuotedName(words[i].text));
    }
  }
  const absl::string_view rest = StripWhiteSpace(text.substr(end));
  return rest.empty()
             ? absl::OkStatus()
             : InvalidArgument(words.back().place, " should stand before ",
                               QuotedName(rest), ", as in ", gold.where,
                               ".text, but is the last one of its document");
}

// Returns the contents of prediction files, whatever they are called: `predict`
// writes JSON lines under any name.
absl::StatusOr<bool> ArePredictionsConll(const std::string& pattern) {
  ETC_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                       FindDataFiles({pattern}));
  return HasConll(paths.front());
}

// The documents of a prediction file that is CoNLL.
absl::StatusOr<std::vector<FileRecord>> ReadConllPredictions(
    const std::string& path, TokensOptions options) {
  options.format = TokensFormat::kConll;
  return Tokens(std::move(options)).ReadFile(path, {});
}

}  // namespace

TokensPrediction Tokens::Decode(Outputs outputs) const {
  const TokensExample& example = *outputs.front().example;
  const LogitRow logits = outputs.front().logits.classes;
  const auto num_classes = static_cast<size_t>(options().num_classes());
  std::vector<UnitClass> classes;
  classes.reserve(example.units.size());
  for (const TokensUnit& unit : example.units) {
    classes.push_back(ClassOfRow(logits.subspan(
        static_cast<size_t>(TokensExample::PositionOf(unit)) * num_classes,
        num_classes)));
  }
  const std::vector<UnitSpan> spans =
      JoinUnits(example, classes, IsStrict(options().tags));
  const std::vector<int64_t> bytes = BytesOfCodePoints(example.text);
  TokensPrediction prediction;
  for (const UnitSpan& span : spans) {
    const auto word = [&](int64_t i) {
      return example.words[static_cast<size_t>(i)];
    };
    const int64_t begin = word(example.units[span.first].first_word).begin;
    const int64_t end = word(example.units[span.last].last_word).end;
    prediction.spans.push_back(
        {.span = {.label = options().labels.at(static_cast<size_t>(span.label)),
                  .start = CodePointAt(begin, bytes),
                  .end = CodePointAt(end, bytes)},
         .text = example.text.substr(static_cast<size_t>(begin),
                                     static_cast<size_t>(end - begin)),
         .probability = span.probability});
  }
  if (!example.sentence_sizes.empty()) {
    prediction.tags = TagsOfWords(example, spans, options());
  }
  return prediction;
}

Tokens::PredictionsOr Tokens::ReadPredictions(const std::string& path) const {
  ETC_ASSIGN_OR_RETURN(const bool is_conll, ArePredictionsConll(path));
  if (!is_conll) {
    return ReadById<Prediction>(path, ParseTokensLine);
  }
  // Other programs' tags, which may begin spans as they like.
  Options lenient = options();
  if (!IsStrict(lenient.tags)) {
    lenient.tags = TagReading::kConlleval;
  }
  lenient.labels.clear();
  ETC_ASSIGN_OR_RETURN(const std::vector<FileRecord> records,
                       ReadConllPredictions(path, lenient));
  const Tokens reader(std::move(lenient));
  ById<Prediction> predictions;
  for (const FileRecord& file_record : records) {
    ETC_ASSIGN_OR_RETURN(
        Record record, reader.ParseRecord(file_record.json, file_record.where));
    if (!record.spans.has_value()) {
      return InvalidArgument(file_record.where,
                             " should have a column of labels (",
                             "tokens.label_column), but has none");
    }
    predictions.emplace_back(std::move(record.id),
                             PredictionOfSpans(*std::move(record.spans)));
  }
  return predictions;
}

absl::Status Tokens::CheckFiles(const Answers& answers,
                                const ScoredFiles& files) const {
  ETC_ASSIGN_OR_RETURN(const bool is_conll,
                       ArePredictionsConll(files.predictions));
  if (!is_conll) {
    return absl::OkStatus();
  }
  ETC_ASSIGN_OR_RETURN(const std::vector<FileRecord> predictions,
                       ReadConllPredictions(files.predictions, options()));
  ETC_ASSIGN_OR_RETURN(const std::vector<PlacedDocument> predicted,
                       PlaceDocuments(*this, predictions));
  // Limits were checked when the gold was read.
  ETC_ASSIGN_OR_RETURN(
      const std::vector<FileRecord> records,
      ReadFiles({files.gold}, {.max_record_bytes = kAnyBytes}));
  ETC_ASSIGN_OR_RETURN(const std::vector<PlacedDocument> documents,
                       PlaceDocuments(*this, records));
  std::set<absl::string_view> answered;
  for (const auto& [id, gold] : answers.gold) {
    answered.insert(id);
  }
  std::map<absl::string_view, const PlacedDocument*> scored;
  for (const PlacedDocument& document : documents) {
    if (answered.contains(document.record.id)) {
      scored.emplace(document.record.id, &document);
    }
  }
  for (const PlacedDocument& document : predicted) {
    const auto gold = scored.find(document.record.id);
    if (gold != scored.end() && !document.record.sentences.empty()) {
      ETC_RETURN_IF_ERROR(gold->second->record.sentences.empty()
                              ? CompareWithText(document, *gold->second)
                              : CompareWords(document, *gold->second));
    }
  }
  return absl::OkStatus();
}

std::string Tokens::PredictionJson(const std::string& id,
                                   const Prediction& prediction) const {
  return LineOfTokens(id, prediction);
}

std::string Tokens::FileContents(const Answers& answers) const {
  return PredictionLines(answers, LineOfTokens);
}

}  // namespace etc
