#ifndef ETC_TASKS_PRETRAIN_PRETRAIN_OPTIONS_H_
#define ETC_TASKS_PRETRAIN_PRETRAIN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fields.h"
#include "nlohmann/json.hpp"
#include "tasks/config/config.h"

namespace etc {

// The object "pretrain" of a configuration, whose field "task" is "pretrain".
// Values without a reference here are this project's choice.
struct PretrainOptions {
  // "mlm_nsp" (BERT), "mlm_cpc" (ETC) or "mlm" (either).
  std::string objective = "mlm_cpc";
  bool next_sentence() const { return objective == "mlm_nsp"; }

  // Share of the tokens that are masked, and the most in an example (for ETC,
  // in a part of a document); 0: as many as the share gives (doc/pretraining.md
  // 3, 9.2).
  double mask_rate = 0.15;
  int64_t max_predictions = 0;
  // True if all pieces of a word are masked together.
  bool whole_words = false;
  // Random tokens are those from here on; 999 leaves out ids that BERT's
  // vocabulary uses otherwise.
  int64_t random_min_id = 0;
  // The piece that masks, if it is neither [MASK] nor <mask>.
  std::string mask_piece;

  // Documents with fewer sentences are left out.
  int64_t min_sentences = 1;
  // Longer documents, if they are not left out, are divided into equal ones of
  // at most this many sentences, as if the text had them; at least
  // min_sentences. 0: they are not.
  int64_t max_sentences = 0;
  // If data.dev is empty, one document in this many is held out of data.train
  // for evaluations; 0: none.
  int64_t development_one_in = 1000;

  // BERT: share of the documents whose examples aim at a shorter length;
  // versions of each document that are made once (BERT's dupe_factor), 0: other
  // examples in each epoch; and documents whose examples are mixed.
  double short_sequence_rate = 0.1;
  int64_t static_versions = 0;
  int64_t mixed_documents = 16;

  // ETC: longest sentence as a share of data.max_long_length; the share of
  // either length from which on a packed input is full, and how many are packed
  // at a time (doc/pretraining.md 8).
  double max_sentence_share = 0.25;
  double packing_full = 0.95;
  int64_t packing_open = 32;
  // The share of sentences that are hidden, and their global token: 2, or 1 as
  // for other sentences (doc/pretraining.md 9.2).
  double cpc_rate = 0.1;
  int64_t cpc_global_id = 2;
  // "bilinear" or "dot", divided by the temperature (doc/pretraining.md 9.1).
  std::string cpc_score = "bilinear";
  double cpc_temperature = 1;

  // Weights of the losses of the objective: mlm_nsp 1 and 1, mlm_cpc 0.8 and
  // 0.2 (doc/pretraining.md 5, 7).
  double mlm_weight = 1;
  double nsp_weight = 1;
  double cpc_weight = 0.2;

  bool operator==(const PretrainOptions&) const = default;
};

template <>
struct ConfigTable<PretrainOptions> {
  using O = PretrainOptions;
  static constexpr absl::string_view kObjectives[] = {"mlm_nsp", "mlm_cpc",
                                                      "mlm"};
  static constexpr absl::string_view kCpcScores[] = {"bilinear", "dot"};
  static constexpr auto kFields = std::make_tuple(
      Field("objective", &O::objective,
            "`\"mlm_cpc\"`, `\"mlm_nsp\"` or `\"mlm\"`: masked tokens, with "
            "hidden sentences, with the next sentence, or alone (BERT: of "
            "single texts instead of pairs)",
            {.one_of = kObjectives}),
      Field("mask_rate", &O::mask_rate, "share of the tokens that are masked",
            {.above = 0, .most = 1}),
      Field("max_predictions", &O::max_predictions,
            "at most so many of an example (ETC: of a window); 0: no limit",
            {.least = 0, .most = 1e9}),
      Field("whole_words", &O::whole_words,
            "all pieces of a word are masked together; true for `mlm_cpc`"),
      Field("random_min_id", &O::random_min_id,
            "random tokens have at least this id; 999 leaves out BERT's "
            "special ones",
            {.least = 0, .most = 1e9}),
      Field("mask_piece", &O::mask_piece,
            "the piece that masks, if neither `[MASK]` nor `<mask>`"),
      Field("min_sentences", &O::min_sentences,
            "shorter documents are left out; 7 for `mlm_cpc`",
            {.least = 1, .most = 1e9}),
      Field("max_sentences", &O::max_sentences,
            "longer documents are divided into documents of so many; 0: they "
            "are not",
            {.least = 0, .most = 1e9}),
      Field("development_one_in", &O::development_one_in,
            "one document of so many is held out; 0: none",
            {.least = 0, .most = 1e12}),
      Field("short_sequence_rate", &O::short_sequence_rate,
            "BERT: share of the documents whose examples aim at a shorter "
            "length",
            {.least = 0, .most = 1}),
      Field("static_versions", &O::static_versions,
            "BERT: so many versions of each document, made once (its "
            "`dupe_factor`); 0: others in each epoch",
            {.least = 0, .most = 1e6}),
      Field("mixed_documents", &O::mixed_documents,
            "BERT: examples of so many documents are shuffled together; with 1 "
            "those of a document follow each other into the same batch",
            {.least = 1, .most = 1e6}),
      Field(
          "max_sentence_share", &O::max_sentence_share,
          "ETC: longest sentence as a share of the length; longer ones are cut",
          {.above = 0, .most = 1}),
      Field("packing_full", &O::packing_full,
            "ETC: share of the length at which a packed sequence is full",
            {.above = 0, .most = 1}),
      Field("packing_open", &O::packing_open,
            "ETC: packed sequences that are open at a time",
            {.least = 1, .most = 1e6}),
      Field("cpc_rate", &O::cpc_rate, "share of the sentences that are hidden",
            {.above = 0, .most = 1}),
      Field("cpc_global_id", &O::cpc_global_id,
            "global token of hidden sentences; 1: that of the others",
            {.least = 1, .most = 2}),
      Field("cpc_score", &O::cpc_score,
            "`\"bilinear\"` or `\"dot\"`: how a hidden sentence is compared",
            {.one_of = kCpcScores}),
      Field("cpc_temperature", &O::cpc_temperature,
            "temperature by which scores of hidden sentences are divided",
            {.above = 0}),
      Field("mlm_weight", &O::mlm_weight,
            "weight of the loss of masked tokens; 0.8 for `mlm_cpc`",
            {.above = 0}),
      Field("nsp_weight", &O::nsp_weight,
            "weight of the loss of the next sentence", {.above = 0}),
      Field("cpc_weight", &O::cpc_weight,
            "weight of the loss of hidden sentences", {.above = 0}));
};

// Returns true if the model reads BERT's inputs: all tokens are global, at most
// data.max_global_length, and none is long.
inline bool ReadsPairs(const RunConfig& config) {
  return !config.model.has_long_tokens;
}

// The options in `config.task_options`. The defaults of `whole_words`,
// `min_sentences` and `mlm_weight` depend on the objective: true, 7 and 0.8 for
// mlm_cpc.
//   kInvalidArgument  a field that does not exist, a wrong type or value, an
//                     objective that is not for the model, a field that decides
//                     nothing for the objective, the model or the tokenizer; no
//                     train.steps
absl::StatusOr<PretrainOptions> ReadPretrainOptions(const RunConfig& config);

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_PRETRAIN_OPTIONS_H_
