#include "tasks/squad/task.h"

#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/counted.h"
#include "tasks/inputs/description.h"
#include "tasks/inputs/text_input.h"

namespace etc {
namespace {

// Text token `position` of an example, the answer in brackets.
std::string WithAnswer(const SquadExample& example, int64_t position,
                       const std::string& piece) {
  const SquadSpan& answer = example.answer;
  if (answer.first == 0) {
    return piece;
  }
  return absl::StrCat(position == answer.first ? "[ " : "", piece,
                      position == answer.last ? " ]" : "");
}

std::string DescribeAnswer(const SquadExample& example) {
  const std::vector<std::string>& answers = example.document->gold.answers;
  if (answers.empty()) {
    return "none";
  }
  return absl::StrCat(answers.front(),
                      example.answer.first == 0 ? " (not in this window)" : "");
}

}  // namespace

BenchmarkInfo Squad::info() const {
  return {.name = "squad",
          .description =
              "SQuAD v1.1 and v2.0: find the answer to a question in a text",
          .prediction_unit = "prediction",
          .may_miss_officially = true,
          .splits_sentences = true,
          .serves_bert = true,
          .has_own_files = true,
          .tells_left_out = true,
          .epochs_count_records = true};
}

TableSizes Squad::Tables(const InputOptions& input) const {
  return {.tokens = input.has_long_tokens ? kSquadQuestionToken + 1 : 0,
          .token_names = "the global tokens 1 to 3",
          .types = TablesOfTexts(input).types};
}

NeededLengths Squad::Lengths(const Options& options) const {
  const int64_t text =
      options.max_query_length + NumMarks(options.marks, true) + 1;
  const char* const text_use =
      NumMarksBetween(options.marks) == 1
          ? "the question, [CLS], two [SEP] and a piece of the context"
          : "the question, the special pieces and a piece of the context";
  if (!options.input.has_long_tokens) {
    return {.global_tokens = text, .global_use = text_use};
  }
  return {.long_tokens = text,
          .long_use = text_use,
          .global_tokens = options.max_query_length + 2,
          .global_use = "the whole text, the question and a sentence"};
}

std::vector<std::string> Squad::Warnings() const {
  const int64_t question = options().max_query_length;
  const int64_t room = RoomForPieces(options().input, options().marks,
                                     /*two_texts=*/true) -
                       question;
  if (options().doc_stride < room) {
    return {};
  }
  return {absl::StrCat("squad.doc_stride ", options().doc_stride,
                       " is not below the ", room,
                       " pieces of a window beside a question of ", question,
                       ": windows do not overlap, and answers at their borders "
                       "are lost")};
}

std::string Squad::Describe(const Example& example) const {
  const SquadDocument& document = *example.document;
  const InputOptions& input = options().input;
  const std::vector<int32_t>& text = TextTokens(example, input);
  const auto token = [&](size_t i) {
    return WithAnswer(example, static_cast<int64_t>(i),
                      tokenizer().Piece(text[i]));
  };
  const auto kind = [&](size_t g) -> std::string {
    if (!input.has_long_tokens) {
      return token(g);
    }
    return g == 0                                               ? "text"
           : example.global_token_ids[g] == kSquadQuestionToken ? "question"
                                                                : "sentence";
  };
  return DescribeExample(
      example,
      {.title = absl::StrCat("question ", example.record_id, ", window ",
                             example.window, " of ", document.num_windows, ": ",
                             document.question),
       .answer = DescribeAnswer(example),
       .size = absl::StrCat(
           Counted(static_cast<int64_t>(document.pieces.size()), "piece"),
           " in the context; ", DescribeLengths(example))},
      {.kind_width = 9, .kind = kind, .token = token});
}

SquadPrediction Squad::Decode(Outputs windows) const {
  std::vector<SquadWindowLogits> logits;
  logits.reserve(windows.size());
  for (const Output& window : windows) {
    const LogitRow ends = window.logits.ends;
    const auto middle = ends.begin() + static_cast<int64_t>(ends.size() / 2);
    logits.push_back({.example = window.example,
                      .starts = {ends.begin(), middle},
                      .ends = {middle, ends.end()}});
  }
  return DecodeSquad(std::move(logits), options(), tokenizer());
}

Scores Squad::Score(const Answers& answers) const {
  ById<SquadVerdict> verdicts;
  verdicts.reserve(answers.predictions.size());
  for (const auto& [id, prediction] : answers.predictions) {
    verdicts.emplace_back(id, JudgeSquad(prediction));
  }
  const bool is_version_2 = options().version == SquadVersion::k2 ||
                            absl::c_any_of(answers.gold, [](const auto& gold) {
                              return gold.second.is_version_2();
                            });
  return {.metrics = is_version_2
                         ? ScoreSquad2(answers.gold, verdicts, answers.rules)
                         : ScoreSquad1(answers.gold, verdicts)};
}

std::string Squad::Remark(const Answers& answers) const {
  const bool may_be_labelled = absl::c_any_of(answers.gold, [](const auto& g) {
    return !g.second.answers.empty() || g.second.has_is_impossible;
  });
  return answers.gold.empty() || may_be_labelled
             ? ""
             : absl::StrCat("none of ",
                            Counted(static_cast<int64_t>(answers.gold.size()),
                                    "question"),
                            " has an answer or is_impossible: is this a test "
                            "file?");
}

}  // namespace etc
