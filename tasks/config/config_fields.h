#ifndef ETC_TASKS_CONFIG_CONFIG_FIELDS_H_
#define ETC_TASKS_CONFIG_CONFIG_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json_reader.h"
#include "tasks/config/config.h"

namespace etc {

// One table of fields for each struct of a configuration. The reader and its
// checks, the comparison of a resumed run, the names that --allow-changes
// accepts and the test of doc/configuration.md all use it. A field that is
// missing in its table does not compile (see HasAllFields).

struct FieldRule {
  // Bounds of a number; in a list, of each. Whole numbers are exact to 2^53.
  std::optional<double> least;  // value >= least
  std::optional<double> above;  // value > above
  std::optional<double> most;   // value <= most
  std::optional<double> below;  // value < below
  // Values that a string may have, an array of the table; none: any. A list in
  // braces does not compile: it would be gone before the table is used.
  absl::Span<const absl::string_view> one_of = {};
  // True if the value names files or a directory; a resumed run compares their
  // contents, wherever they are now. `no_file` is a value that stands for none.
  bool names_files = false;
  absl::string_view no_file = "";
  // The reason why a resumed run may have another value; empty: it may not.
  absl::string_view may_change = "";
  // True if the ranks of a run may have different values, because no collective
  // operation depends on it.
  bool is_local = false;
  // True for a field that came later: settings of a run note it only where it
  // is not the default, so that those of earlier versions are the same.
  bool is_later = false;
};

template <typename Config, typename Value>
struct ConfigField {
  const char* name;
  Value Config::*member;
  FieldRule rule;
};

template <typename Config, typename Value>
constexpr ConfigField<Config, Value> Field(const char* name,
                                           Value Config::*member,
                                           FieldRule rule = {}) {
  return {name, member, rule};
}

// kObject is the struct's name in the file, kFields its fields in their order.
template <typename Config>
struct ConfigTable;

// Calls visit(field, value) for each field of one struct.
template <typename Config, typename Visitor>
void ForEachField(Config& config, Visitor visit) {
  std::apply(
      [&](const auto&... fields) {
        (visit(fields, config.*fields.member), ...);
      },
      ConfigTable<std::remove_const_t<Config>>::kFields);
}

// True if the table has every field of the struct in its order: the fields'
// types, and no value more, initialise it.
template <typename Config>
constexpr bool HasAllFields() {
  return std::apply(
      []<typename... Values>(const ConfigField<Config, Values>&...) {
        return requires(Values... values) { Config{values...}; }
        &&!requires(Values... values) { Config{values..., {}}; };
      },
      ConfigTable<Config>::kFields);
}

// The tables of all structs of a configuration, but for FinetuneConfig::model
// (etc/config.cc) and task_options, which a task reads.

// The fields of the file outside its objects.
template <>
struct ConfigTable<FinetuneConfig> {
  static constexpr char kObject[] = "";
  static constexpr absl::string_view kModes[] = {"off", "sum", "mean", "decay",
                                                 "gate"};
  static constexpr auto kFields = std::make_tuple(
      Field("task", &FinetuneConfig::task),
      Field("init", &FinetuneConfig::init, {.names_files = true}),
      Field("residual_attention", &FinetuneConfig::residual_attention,
            {.one_of = kModes}),
      Field(
          "output", &FinetuneConfig::output,
          {.may_change = "a run's directory may be moved", .is_local = true}));
};

template <>
struct ConfigTable<TokenizerConfig> {
  using C = TokenizerConfig;
  static constexpr char kObject[] = "tokenizer";
  static constexpr absl::string_view kTypes[] = {"wordpiece", "sentencepiece"};
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type, {.one_of = kTypes}),
      Field("vocabulary", &C::vocabulary, {.names_files = true}),
      Field("lower_case", &C::lower_case),
      Field("split_punctuation", &C::split_punctuation));
};

template <>
struct ConfigTable<DataConfig> {
  using C = DataConfig;
  static constexpr char kObject[] = "data";
  static constexpr absl::string_view kOnBadRecord[] = {"error", "skip"};
  static constexpr auto kFields = std::make_tuple(
      Field("train", &C::train, {.names_files = true}),
      Field("dev", &C::dev, {.names_files = true}),
      Field("dev_fraction", &C::dev_fraction, {.least = 0, .below = 1}),
      Field("dev_seed", &C::dev_seed, {.least = 0}),
      Field("dev_records", &C::dev_records),
      Field("max_long_length", &C::max_long_length,
            {.least = 1, .most = 1 << 20}),
      Field("max_global_length", &C::max_global_length,
            {.least = 1, .most = 1 << 20}),
      Field("workers", &C::workers,
            {.least = 1,
             .most = 1024,
             .may_change = "the order stays",
             .is_local = true}),
      Field("cache_megabytes", &C::cache_megabytes,
            {.least = 0,
             .most = 1e9,
             .may_change = "decides time and memory only",
             .is_local = true}),
      Field("max_record_megabytes", &C::max_record_megabytes,
            {.least = 1,
             .most = 1e6,
             .may_change = "decides only what data are refused",
             .is_local = true}),
      Field("bucket_batches", &C::bucket_batches, {.least = 1, .most = 1e9}),
      Field("on_bad_record", &C::on_bad_record, {.one_of = kOnBadRecord}),
      Field("sentences", &C::sentences,
            {.names_files = true, .no_file = "icu"}));
};

template <>
struct ConfigTable<OptimizerConfig> {
  using C = OptimizerConfig;
  static constexpr char kObject[] = "optimizer";
  static constexpr absl::string_view kTypes[] = {"bert_adamw", "lamb", "adamw"};
  static constexpr auto kFields =
      std::make_tuple(Field("type", &C::type, {.one_of = kTypes}),
                      Field("weight_decay", &C::weight_decay, {.least = 0}),
                      Field("beta1", &C::beta1, {.least = 0, .below = 1}),
                      Field("beta2", &C::beta2, {.least = 0, .below = 1}),
                      Field("epsilon", &C::epsilon, {.above = 0}),
                      Field("clip_norm", &C::clip_norm, {.least = 0}));
};

template <>
struct ConfigTable<ScheduleConfig> {
  using C = ScheduleConfig;
  static constexpr char kObject[] = "schedule";
  static constexpr absl::string_view kTypes[] = {"poly", "linear", "cosine",
                                                 "constant"};
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type, {.one_of = kTypes, .is_later = true}),
      Field("warmup_proportion", &C::warmup_proportion,
            {.least = 0, .most = 1}),
      Field("warmup_steps", &C::warmup_steps,
            {.least = 0, .most = 1e12, .is_later = true}),
      Field("poly_power", &C::poly_power, {.least = 0}),
      Field("start_warmup_step", &C::start_warmup_step, {.least = 0}));
};

template <>
struct ConfigTable<TrainConfig> {
  using C = TrainConfig;
  static constexpr char kObject[] = "train";
  static constexpr absl::string_view kPrecisions[] = {"fp32", "bf16"};
  static constexpr absl::string_view kScoreStorages[] = {"reverse", "recompute",
                                                         "store"};
  static constexpr absl::string_view kBackends[] = {"gloo", "nccl"};
  static constexpr absl::string_view kDirections[] = {"auto", "max", "min"};
  static constexpr auto kFields = std::make_tuple(
      Field("learning_rate", &C::learning_rate, {.above = 0}),
      Field("gate_learning_rate_factor", &C::gate_learning_rate_factor,
            {.above = 0, .most = 1e9}),
      Field("learning_rate_factors", &C::learning_rate_factors,
            {.is_later = true}),
      Field("frozen", &C::frozen, {.is_later = true}),
      Field("batch_size", &C::batch_size, {.least = 1, .most = 1e9}),
      Field("micro_batch_size", &C::micro_batch_size,
            {.least = 1, .most = 1e9}),
      Field("epochs", &C::epochs, {.above = 0, .most = 1e6}),
      Field("steps", &C::steps, {.least = 1, .most = 1e12}),
      Field("num_train_examples", &C::num_train_examples,
            {.least = 1, .most = 1e12}),
      Field("evaluate_every", &C::evaluate_every,
            {.least = 0, .may_change = "an evaluation trains nothing"}),
      Field("evaluate_at_start", &C::evaluate_at_start,
            {.may_change = "an evaluation trains nothing"}),
      Field("main_metric", &C::main_metric, {.is_later = true}),
      Field("main_metric_direction", &C::main_metric_direction,
            {.one_of = kDirections, .is_later = true}),
      Field("early_stopping", &C::early_stopping,
            {.least = 0, .may_change = "it decides only the end"}),
      Field("early_stopping_improvement", &C::early_stopping_improvement,
            {.least = 0, .may_change = "it decides only the end"}),
      Field("checkpoint_every", &C::checkpoint_every,
            {.least = 0, .may_change = "a checkpoint trains nothing"}),
      Field("checkpoint_minutes", &C::checkpoint_minutes,
            {.least = 0,
             .most = 1e6,
             .may_change = "a checkpoint trains nothing"}),
      Field("keep_best", &C::keep_best,
            {.least = 1, .most = 1e6, .may_change = "it trains nothing"}),
      Field("keep_last", &C::keep_last,
            {.least = 1, .most = 1e6, .may_change = "it trains nothing"}),
      Field("evaluation_batch_size", &C::evaluation_batch_size,
            {.least = 1, .most = 1e9, .may_change = "it trains nothing"}),
      Field("seeds", &C::seeds,
            {.least = 0, .may_change = "each run has a seed of its own"}),
      Field("threads", &C::threads,
            {.least = 0,
             .most = 1024,
             .may_change = "no bit depends on it",
             .is_local = true}),
      Field("device", &C::device,
            {.may_change = "a run may be moved", .is_local = true}),
      Field("precision", &C::precision, {.one_of = kPrecisions}),
      Field("score_storage", &C::score_storage, {.one_of = kScoreStorages}),
      Field("watch_scores", &C::watch_scores,
            {.least = 0, .may_change = "it trains nothing"}),
      Field("shard_optimizer", &C::shard_optimizer,
            {.may_change = "no update depends on it"}),
      Field("backend", &C::backend,
            {.one_of = kBackends, .may_change = "a run may be moved"}),
      Field("timeout_s", &C::timeout_s,
            {.above = 0,
             .most = 1e6,
             .may_change = "trains nothing",
             .is_local = true}));
};

// Calls visit("train.steps", field, value) for each field of all of them.
template <typename Finetune, typename Visitor>
void ForEachConfigField(Finetune& config, Visitor visit) {
  const auto all = [&](auto&... objects) {
    const auto each = [&](auto& object) {
      using Table = ConfigTable<std::remove_cvref_t<decltype(object)>>;
      const std::string prefix = absl::string_view(Table::kObject).empty()
                                     ? std::string()
                                     : std::string(Table::kObject) + ".";
      ForEachField(object, [&](const auto& field, auto& value) {
        visit(prefix + field.name, field, value);
      });
    };
    (each(objects), ...);
  };
  all(config, config.tokenizer, config.data, config.optimizer, config.schedule,
      config.train);
}

// Adds the error "<field> should be at least 1, but is 0" to `reader` if
// `value` breaks `rule`.
void CheckRule(const FieldRule& rule, const std::string& field, int64_t value,
               JsonObjectReader* reader);
void CheckRule(const FieldRule& rule, const std::string& field, double value,
               JsonObjectReader* reader);
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::string& value, JsonObjectReader* reader);

// Each element, or the value if there is one.
template <typename T>
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::vector<T>& values, JsonObjectReader* reader) {
  for (const T& value : values) {
    CheckRule(rule, field, value, reader);
  }
}
template <typename T>
void CheckRule(const FieldRule& rule, const std::string& field,
               const std::optional<T>& value, JsonObjectReader* reader) {
  if (value.has_value()) {
    CheckRule(rule, field, *value, reader);
  }
}

// The value of a field as JSON; null: it is absent.
template <typename Value>
nlohmann::json FieldToJson(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
  } else {
    return value;
  }
}

// Reads a list of objects {"parameters": "head.*", "factor": 0.1}, or one of
// them, if it is there; factors should be more than 0.
void ReadFactors(const std::string& field, JsonObjectReader* reader,
                 std::vector<LearningRateFactor>* factors);

// Reads the fields of `config` that are there, and checks each by its rule.
template <typename Config>
void ReadFields(JsonObjectReader* reader, Config* config) {
  ForEachField(*config, [reader](const auto& field, auto& value) {
    if constexpr (std::is_same_v<decltype(value),
                                 std::vector<LearningRateFactor>&>) {
      ReadFactors(field.name, reader, &value);
    } else if constexpr (requires { reader->OneOrMore(field.name, &value); }) {
      reader->OneOrMore(field.name, &value);
    } else {
      reader->Optional(field.name, &value);
    }
    if constexpr (!std::is_same_v<decltype(value), bool&> &&
                  !std::is_same_v<decltype(value),
                                  std::vector<LearningRateFactor>&>) {
      CheckRule(field.rule, field.name, value, reader);
    }
  });
}

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_CONFIG_FIELDS_H_
