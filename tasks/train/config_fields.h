#ifndef ETC_TASKS_TRAIN_CONFIG_FIELDS_H_
#define ETC_TASKS_TRAIN_CONFIG_FIELDS_H_

#include <string>
#include <tuple>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "tasks/train/config.h"
#include "tasks/train/config_parts.h"
#include "tasks/train/config_table.h"

namespace etc {

// The tables of all structs of a configuration (tasks/train/config_table.h),
// but for FinetuneConfig::model (etc/config.cc) and task_options, which a task
// reads.

// The fields of the file outside its objects.
template <>
struct ConfigTable<FinetuneConfig> {
  static constexpr char kObject[] = "";
  static constexpr auto kFields = std::make_tuple(
      Field("task", &FinetuneConfig::task),
      Field("init", &FinetuneConfig::init, {.names_files = true}),
      Field("residual_attention", &FinetuneConfig::residual_attention,
            {.one_of = {"off", "sum", "mean"}}),
      Field(
          "output", &FinetuneConfig::output,
          {.may_change = "a run's directory may be moved", .is_local = true}));
};

template <>
struct ConfigTable<TokenizerConfig> {
  using C = TokenizerConfig;
  static constexpr char kObject[] = "tokenizer";
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type, {.one_of = {"wordpiece", "sentencepiece"}}),
      Field("vocabulary", &C::vocabulary, {.names_files = true}),
      Field("lower_case", &C::lower_case),
      Field("split_punctuation", &C::split_punctuation));
};

template <>
struct ConfigTable<DataConfig> {
  using C = DataConfig;
  static constexpr char kObject[] = "data";
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
      Field("on_bad_record", &C::on_bad_record, {.one_of = {"error", "skip"}}),
      Field("sentences", &C::sentences,
            {.names_files = true, .no_file = "icu"}));
};

template <>
struct ConfigTable<OptimizerConfig> {
  using C = OptimizerConfig;
  static constexpr char kObject[] = "optimizer";
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type, {.one_of = {"bert_adamw", "lamb", "adamw"}}),
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
  static constexpr auto kFields = std::make_tuple(
      Field("warmup_proportion", &C::warmup_proportion,
            {.least = 0, .most = 1}),
      Field("poly_power", &C::poly_power, {.least = 0}),
      Field("start_warmup_step", &C::start_warmup_step, {.least = 0}));
};

template <>
struct ConfigTable<TrainConfig> {
  using C = TrainConfig;
  static constexpr char kObject[] = "train";
  static constexpr auto kFields = std::make_tuple(
      Field("learning_rate", &C::learning_rate, {.above = 0}),
      Field("batch_size", &C::batch_size, {.least = 1, .most = 1e9}),
      Field("micro_batch_size", &C::micro_batch_size,
            {.least = 1, .most = 1e9}),
      Field("epochs", &C::epochs, {.above = 0, .most = 1e6}),
      Field("steps", &C::steps, {.least = 1, .most = 1e12}),
      Field("num_train_examples", &C::num_train_examples,
            {.least = 1, .most = 1e12}),
      Field("evaluate_every", &C::evaluate_every,
            {.least = 0, .may_change = "an evaluation trains nothing"}),
      Field("checkpoint_every", &C::checkpoint_every,
            {.least = 0, .may_change = "a checkpoint trains nothing"}),
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
      Field("precision", &C::precision, {.one_of = {"fp32", "bf16"}}),
      Field("score_storage", &C::score_storage,
            {.one_of = {"reverse", "recompute", "store"}}),
      Field("shard_optimizer", &C::shard_optimizer,
            {.may_change = "no update depends on it"}),
      Field("backend", &C::backend,
            {.one_of = {"gloo", "nccl"}, .may_change = "a run may be moved"}),
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

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_CONFIG_FIELDS_H_
