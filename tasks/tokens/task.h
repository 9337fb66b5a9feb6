#ifndef ETC_TASKS_TOKENS_TASK_H_
#define ETC_TASKS_TOKENS_TASK_H_

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json_reader.h"
#include "etc/config.h"
#include "nlohmann/json_fwd.hpp"
#include "tasks/config/config.h"
#include "tasks/data/record_source.h"
#include "tasks/inputs/text_input.h"
#include "tasks/metrics.h"
#include "tasks/task/benchmark.h"
#include "tasks/text/tokenizer.h"
#include "tasks/tokens/example.h"
#include "tasks/tokens/options.h"
#include "tasks/tokens/record.h"

namespace etc {

// See tasks/task/benchmark.h.
template <typename T>
struct TokensLogits {
  T classes;  // [T, C] of the tokens of the text

  static constexpr auto kMembers = std::make_tuple(&TokensLogits::classes);
};

// Reads the field "spans", a list of objects with `start`, `end` and `label`;
// absent or null: none. Their other fields are not read.
void ReadTokensSpans(JsonObjectReader& reader,
                     std::optional<std::vector<TokensSpan>>* spans);

// Checks that a label is one of `labels`, if these are known.
//   kInvalidArgument  "<where> should be one of "a", "b", but is "c""
absl::Status CheckTokensLabel(absl::string_view label,
                              const std::vector<std::string>& labels,
                              const std::string& where);

// Labels for parts of documents of any origin, such as names, from CoNLL files
// or JSON with spans. A word is labelled at its first piece, as IOB2 has it.
class Tokens final
    : public Benchmark<TokensRecord, TokensExample, TokensLogits, TokensOptions,
                       std::vector<TokensSpan>, TokensPrediction> {
 public:
  using Benchmark::Benchmark;

  BenchmarkInfo info() const override;
  std::string main_metric() const override { return "f1"; }

  void CheckOptions(JsonObjectReader& reader, Options* options) const override;
  TableSizes Tables(const InputOptions& input) const override {
    return TablesOfTexts(input);
  }
  NeededLengths Lengths(const Options& options) const override {
    return LengthsOfTexts(options.input);
  }
  // Looks up what stands around texts (FindTextMarks).
  absl::Status UseVocabulary(const Tokenizer& tokenizer,
                             Options* options) const override {
    return FindTextMarks(tokenizer, &options->marks);
  }
  // Adds the labels of the training data, sorted, to `json`, which options()
  // were read from, if it names none. Reads the files of data.train once, and
  // keeps nothing of them.
  //   kInvalidArgument  a mistake in a record (none if `data.on_bad_record` is
  //                     "skip"); no span in the training data
  absl::Status CompleteOptions(const DataConfig& data,
                               nlohmann::json* json) const override;

  // Reads CoNLL, or JSON objects as they are. A document of CoNLL is called by
  // its first line ("train.conll:17") and becomes {"sentences": [["EU", ...],
  // ...], "tags": [["B-ORG", ...], ...]}.
  absl::StatusOr<std::vector<FileRecord>> ReadFile(
      const std::string& path, const RecordLimits& limits) const override;
  // Reads {"text": ..., "spans": [...]} or {"sentences": ..., "tags": ...}, not
  // both; spans beside tags should be those of the tags, and the "text" of a
  // span, if it is there, that part of the text. Mistakes in tags are noted
  // with their line, if they are of CoNLL.
  void ReadRecord(JsonObjectReader& reader, Record* record) const override;
  std::vector<std::string> AnswerFields() const override {
    return {"spans", "tags"};
  }
  std::vector<std::string> DocumentFields() const override {
    return {"text", "sentences"};
  }
  //   kInvalidArgument  a text without words; a span that lies outside of the
  //                     text, overlaps another one, begins or ends with white
  //                     space that is no part of a word, or has none of the
  //                     options' labels
  absl::Status CheckRecord(const Record& record,
                           const std::string& where) const override;
  // Lines for people: of each set the number of documents, words and spans, and
  // the labels; and warnings of spans that no prediction is equal to, as they
  // lie behind the cut or do not end where units do, and of labels that no
  // training document has. With tokenizer().
  Notices DescribeRecords(const std::vector<FileRecord>& train,
                          const std::vector<FileRecord>& dev) const override;
  //   kInvalidArgument  what CheckRecord says
  ExamplesOr MakeExamples(Record record,
                          const std::string& where) const override;
  std::vector<TruncatedPart> Truncated(const Example& example) const override {
    return PartsOf({{"pieces", example.dropped_pieces, example.cut_at}});
  }
  std::vector<GlobalTokenName> GlobalTokenNames() const override {
    return GlobalTokensOfTexts(options().input.has_long_tokens);
  }
  // The number of pieces that did not fit, and the tokens, first pieces of
  // spans with their tag.
  std::string Describe(const Example& example) const override;

  // The class with the largest logit at the first piece of each word, joined to
  // spans as conlleval reads tags (SpansOfTags), or, where the options are
  // strict, as kStrictIob2: a model's classes are those of IOB2.
  Prediction Decode(Outputs outputs) const override;
  Gold GoldOf(const Example& example) const override { return example.gold; }
  std::optional<Gold> GoldOf(const Record& record) const override {
    return record.spans;
  }
  Example::IdKind IdKindOf(const Record& record) const override {
    return record.has_id ? Example::IdKind::kUnique : Example::IdKind::kNumber;
  }
  // Reads and, as FileContents, writes a line for each document:
  //
  //   {"id": "7", "spans": [{"start": 0, "end": 4, "label": "PER", "text":
  //   "Anna", "probability": 0.98}, ...]}
  //
  // and "tags" if its text was split already. Reading does without the text and
  // the probability; it reads CoNLL as well (HasConll), whatever the name of
  // the file, whose tags are read as conlleval reads them unless the options
  // are strict.
  //   kInvalidArgument  a line that is none of these, by its number; a span
  //                     without characters
  PredictionsOr ReadPredictions(const std::string& path) const override;
  // Checks that CoNLL has the words of the gold, of which it has the spans.
  //   kInvalidArgument  the first that it does not have, with both places
  absl::Status CheckFiles(const Answers& answers,
                          const ScoredFiles& files) const override;
  std::string FileContents(const Answers& answers) const override;
  // A line of the file.
  std::string PredictionJson(const std::string& id,
                             const Prediction& prediction) const override;
  // The scores of seqeval, which are those of CoNLL's conlleval; tags are read
  // to spans before, which is where seqeval's modes differ (TagReading). A
  // predicted span is right if the gold has the same one with the same label,
  //
  //   precision = right / predicted    recall = right / gold
  //   f1 = 2 right / (gold + predicted)
  //
  // over all documents; 0 where that is 0 / 0. The diagnostics are the same of
  // each label, and support[a], the number of its gold spans.
  Scores Score(const Answers& answers) const override;
  // F1; 1 where there is no span to find and none is predicted.
  std::pair<std::string, double> RecordScore(
      const Answers& answers) const override {
    return answers.gold.front().second.empty() &&
                   answers.predictions.front().second.spans.empty()
               ? std::pair(main_metric(), 1.0)
               : Benchmark::RecordScore(answers);
  }
};

// A linear layer on the outputs x of the text's T tokens, with the encoder's
// dropout:
//
//   classes = dropout(x) w + b       [B, T, C], C = 1 + 2 labels
//
// (HuggingFace's BertForTokenClassification). w, b: classifier; w is truncated
// normal with a standard deviation of 0.02. The loss of a document is the mean
// cross entropy over the first pieces of its words.
Tokens::HeadPtr MakeTokensHead(const EtcConfig& model,
                               const TokensOptions& options);

}  // namespace etc

#endif  // ETC_TASKS_TOKENS_TASK_H_
