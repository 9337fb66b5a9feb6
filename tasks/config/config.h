#ifndef ETC_TASKS_CONFIG_CONFIG_H_
#define ETC_TASKS_CONFIG_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etc/config.h"
#include "etc/encoder_decoder/config.h"
#include "nlohmann/json.hpp"
#include "nlohmann/json_fwd.hpp"
#include "tasks/data/record_scanner.h"

namespace etc {

// The objects within the configuration of a run. The tables of
// tasks/config/config_fields.h say which values each field may have and whether
// it may change at --resume; they have the fields in the same order.

struct TokenizerConfig {
  // "wordpiece", "sentencepiece" or "huggingface"; if the configuration leaves
  // it out, that of `vocabulary` (DescribeTokenizerAt). Translation has
  // "sentencepiece" or "dictionary", fairseq's dict.txt for text that is in
  // pieces already.
  std::string type = "wordpiece";
  // File of the vocabulary: a vocab.txt, a tokenizer.json or a SentencePiece
  // model. Fields of this struct that the configuration leaves out are those of
  // `init`.
  std::string vocabulary;
  // WordPiece: fold to lower case. If the configuration leaves it out, what the
  // files beside the vocabulary say (DescribeTokenizer), which also say the
  // rest; the opposite of what they say is refused. True is refused of other
  // types, unless no file of the vocabulary is there yet.
  bool lower_case = true;
  // SentencePiece: split at white space and punctuation first, and encode word
  // by word (doc/model.md 9.4).
  bool split_punctuation = false;

  bool operator==(const TokenizerConfig&) const = default;
};

struct DataConfig {
  // Official files, or patterns of their names (tasks/data/data_files.h), plain
  // or compressed by gzip.
  std::vector<std::string> train;
  std::vector<std::string> dev;
  // Share of the training records that are held out for evaluations where `dev`
  // names no files, and the seed of their choice. Tasks whose records have one
  // label or several: the share of each is the same.
  double dev_fraction = 0;
  int64_t dev_seed = 1;
  // The number and SHA-256 of the held out records (DescribeHeldOut), which a
  // run writes into its checkpoints; empty: not known yet.
  std::string dev_records;
  // Tokens; the task truncates longer examples.
  int64_t max_long_length = 4096;
  int64_t max_global_length = 512;
  // Threads that prefetch examples.
  int64_t workers = 1;
  // Memory for cached examples; and at most as much again for prefetched ones.
  int64_t cache_megabytes = 1024;
  // Longest record, uncompressed.
  int64_t max_record_megabytes = 64;
  // Training batches are cut from pools of this many batches' examples (at most
  // those of an epoch) sorted by length; 1: batches do not depend on length.
  int64_t bucket_batches = 16;
  // Treatment of a record that is not in the official format: "error" or
  // "skip".
  std::string on_bad_record = "error";
  // Sentence splitter of a task: "icu", or a folder of the tables of NLTK's
  // Punkt (tasks/text/sentence_splitter.h).
  std::string sentences = "icu";

  bool operator==(const DataConfig&) const = default;
};

struct OptimizerConfig {
  // "bert_adamw" (official: no bias correction), "lamb", "adamw" (LibTorch's),
  // "fairseq_adam" or "radam" (tasks/train/optimizer.h).
  std::string type = "bert_adamw";
  double weight_decay = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  // Largest global norm of a gradient; 0: no clipping.
  double clip_norm = 1.0;

  bool operator==(const OptimizerConfig&) const = default;
};

struct ScheduleConfig {
  // "poly" (official), "linear", "cosine", "constant" or "inverse_sqrt"
  // (tasks/train/schedule.h).
  std::string type = "poly";
  // Share of all steps with a rising rate (doc/model.md 8.1); `warmup_steps`,
  // when given, decides instead.
  double warmup_proportion = 0.1;
  std::optional<int64_t> warmup_steps;
  double poly_power = 1.0;
  int64_t start_warmup_step = 0;
  // The rate at which the warm-up begins, and the one at which "linear" ends.
  double initial_learning_rate = 0;
  double min_learning_rate = 0;

  bool operator==(const ScheduleConfig&) const = default;
};

// A learning rate of their own for some parameters.
struct LearningRateFactor {
  // Pattern of parameter names (MatchesParameter in
  // tasks/train/optimizer.h).
  std::string parameters;
  // Multiple of the learning rate.
  double factor = 1.0;

  bool operator==(const LearningRateFactor&) const = default;
};

// The object in a configuration.
inline void to_json(nlohmann::json& json, const LearningRateFactor& factor) {
  json = {{"parameters", factor.parameters}, {"factor", factor.factor}};
}

struct TrainConfig {
  double learning_rate = 5e-5;
  // Gates of residual attention "gate" have this multiple of it.
  double gate_learning_rate_factor = 1.0;
  // The same of other parameters; of several that name a parameter the last
  // one decides.
  std::vector<LearningRateFactor> learning_rate_factors;
  // Patterns of the names of parameters that are not trained.
  std::vector<std::string> frozen;
  // Examples per update, and how many of them, at most, are computed at a time.
  // Translation counts batches of translation.max_tokens, 1 by default, one of
  // which is computed at a time.
  int64_t batch_size = 32;
  int64_t micro_batch_size = 1;
  // Passes over the training data; `steps`, when given, decides instead.
  double epochs = 3;
  std::optional<int64_t> steps;
  // Examples that `epochs` counts with; absent: as many as the data have.
  std::optional<int64_t> num_train_examples;
  // The first records of the training data that are used, for quick trials; 0:
  // all.
  int64_t max_examples = 0;
  // Updates between evaluations; absent: once an epoch. 0: only at the end.
  std::optional<int64_t> evaluate_every;
  // True if the weights that a run starts from are evaluated, too.
  bool evaluate_at_start = false;
  // The score by which checkpoints are compared; empty: that of the task.
  std::string main_metric;
  // "max" if larger is better, "min" if smaller is; "auto": as the score's
  // name says (IsLowerBetter in tasks/metrics.h).
  std::string main_metric_direction = "auto";
  // Evaluations in a row whose score does not improve by more than
  // `early_stopping_improvement` and which end the run; 0: none do.
  int64_t early_stopping = 0;
  double early_stopping_improvement = 0;
  // Updates between checkpoints for --resume; 0: only at evaluations.
  int64_t checkpoint_every = 0;
  // Minutes between checkpoints; 0: the time decides none.
  double checkpoint_minutes = 30;
  // Checkpoints that are kept: those with the best scores, and the last ones.
  int64_t keep_best = 1;
  int64_t keep_last = 1;
  // Examples per evaluation batch.
  int64_t evaluation_batch_size = 8;
  // One run for each.
  std::vector<int64_t> seeds = {1};
  // CPU threads; 0: OMP_NUM_THREADS, or as many as there are cores.
  int64_t threads = 0;
  // Device of the model: "auto", "cpu", "cuda" or "cuda:1"
  // (tasks/config/device_choice.h).
  std::string device = "auto";
  // Precision of the factors of products, of linear layers and attention:
  // "fp32" or "bf16" (base/linear.h, attention/sparse_attention.h).
  std::string precision = "fp32";
  // "reverse", "recompute" or "store": attention/residual_scores.h.
  std::string score_storage = "reverse";
  // "auto", "kept", "layers", "files" or "slices": MemoryPlan
  // (tasks/train/memory_plan.h).
  std::string memory_plan = "auto";
  // Gigabytes that "auto" may use; 0: all that the process may have.
  double memory_gigabytes = 0;
  // Directory for "files"; empty: "auto" does without.
  std::string memory_directory;
  // Updates between statistics of scores and attention weights in
  // metrics.jsonl (TrainableModel::WatchNextForward); 0: none.
  int64_t watch_scores = 0;
  // True if rank 0 writes the metrics for TensorBoard, too
  // (tasks/output/event_log.h).
  bool tensorboard = false;
  // True if each rank keeps the optimizer's state of its shard of the
  // parameters (tasks/train/optimizer_shards.h).
  bool shard_optimizer = false;
  // Backend that all-reduces the gradients of CUDA devices, "gloo" or "nccl";
  // on CPUs it is Gloo.
  std::string backend = "gloo";
  // Seconds that a rank waits for the others, at most.
  double timeout_s = 600;

  bool operator==(const TrainConfig&) const = default;
};

// Fields of the object "model" beside those of EtcConfig, which override them;
// at most one of the two may be given.
struct ModelOrigin {
  std::string preset;  // EtcConfigPreset
  std::string path;    // an etc_config.json, or the configuration of a BERT
};

// The configuration of a run: the contents of its JSON file. Each struct
// is the object of the same name in it, and each field has the name that it has
// there. A new field is one line in the struct, one in its table
// (tasks/config/config_fields.h) and a row in doc/configuration.md.
struct RunConfig {
  // "wikihop", ...: see the registry.
  std::string task;
  // {"preset": "base"} or {"path": "etc_config.json"} (ModelOrigin), and any
  // fields of etc_config.json beside it, which override these. `init` overrides
  // the guesses of a preset (GuessesVocabularies) too. With neither of the two
  // they override the configuration of `init`, or what BERT in `init` is lifted
  // to, unless has_long_tokens is false.
  EtcConfig model;
  // Weights to start from, in any format of etc/weights/weights.h. Of a run or
  // a grid it is the directory of its best checkpoint (FindCheckpoint), not a
  // link. Empty: random ones.
  std::string init;
  // "off", "sum", "mean", "decay" or "gate", and the same in `model`; absent:
  // as in `model`, which has residual_decay and residual_gate_init.
  std::string residual_attention = "off";
  // The model of translation, in the place of `model`, which is then the
  // default one and not used; nothing for other tasks.
  std::optional<EncoderDecoderConfig> encoder_decoder;
  TokenizerConfig tokenizer;
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  TrainConfig train;
  // The object with the task's name, which the task reads.
  nlohmann::json task_options = nlohmann::json::object();
  // Directory for checkpoints, metrics and predictions.
  std::string output;
  // Lists of values by the names of fields (tasks/config/grid.h).
  nlohmann::json grid = nlohmann::json::object();

  // Prefix of messages about it: the path of its file.
  std::string source;
  // The JSON that all this was read from, with the overrides in it.
  nlohmann::json json = nlohmann::json::object();
  // Messages for the user about settings that are allowed, but likely not
  // meant.
  std::vector<std::string> warnings;
};

// Returns an error if there is no task of that name: the status of FindTask
// (tasks/registry.h).
using TaskNameCheck = std::function<absl::Status(const std::string& name)>;

// Types of fields by their names, as FieldDescription::type has them.
using FieldTypes = std::map<std::string, std::string>;

// Reads the file at `path` and applies `overrides`, each
// "train.learning_rate=3e-5": a path of field names, and a JSON value or else a
// string. A field that is a text as `types` say takes a number as it is
// written, and null takes a field out of the file; in the object "model" it is
// a value, but for "preset" and "path". Relative paths in it are relative to
// the working directory. Where `check_task` is not null, its error is returned
// before that of any other field: a misspelt task makes the object of the
// task's name an unknown field.
//   kInvalidArgument  a field that does not exist (with the nearest one that
//                     does), a wrong type, a value out of range
absl::StatusOr<RunConfig> ReadRunConfig(
    const std::string& path, const std::vector<std::string>& overrides,
    const TaskNameCheck& check_task = nullptr, const FieldTypes& types = {});

// The same from JSON; `source` starts each message.
absl::StatusOr<RunConfig> RunConfigFromJson(
    nlohmann::json json, const std::string& source,
    const TaskNameCheck& check_task = nullptr);

// Refuses fields of the object `name` of a configuration ("data") that decide
// nothing; `reason` says where ("for translation").
//   kInvalidArgument  the object has one of them
absl::Status RefuseFields(const RunConfig& config, const std::string& name,
                          const std::vector<std::string>& fields,
                          const std::string& reason);

// The longest record: data.max_record_megabytes.
RecordLimits RecordLimitsOf(const DataConfig& data);

// The parts of a configuration that decide how predictions are scored.
struct ScoringConfig {
  // As of RunConfig.
  nlohmann::json task_options = nlohmann::json::object();
  DataConfig data;
};

// Reads those of `json`, a configuration of `task` or a part of one, in which
// also "task" may be missing. Of its other objects the names alone are checked:
// the files that they name need not be here.
//   kInvalidArgument  another task, a field outside of the objects that does
//                     not exist (with the nearest one that does), mistakes in
//                     "data"
absl::StatusOr<ScoringConfig> ReadScoringConfig(const nlohmann::json& json,
                                                const std::string& source,
                                                const std::string& task);

// Returns true if the vocabulary decides model.vocab_size even over a preset:
// the configuration gives neither it, nor `init`, nor model.path. Where the
// vocabulary is not there, the model has the rows of its preset.
bool VocabularySetsRows(const RunConfig& config);

// The name of the task whose model is an encoder-decoder.
inline constexpr char kTranslationTask[] = "translation";
// File of a checkpoint directory with the configuration of that model.
inline constexpr char kEncoderDecoderFile[] = "encoder_decoder.json";

// The fields of the model that the configuration has, as a JSON object.
std::string ModelToJson(const RunConfig& config);

// The encoder that the object "model" of a configuration describes (see
// RunConfig::model). `init` are the weights to start from, or empty;
// `where` starts each message. Warnings for the user are appended to
// `*warnings`.
//   kInvalidArgument  unknown fields, wrong types, errors of CheckEtcConfig
//   kNotFound         there is no such preset or file
absl::StatusOr<EtcConfig> ReadConfigModel(const nlohmann::json& json,
                                          const std::string& where,
                                          const std::string& init,
                                          std::vector<std::string>* warnings);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_CONFIG_H_
