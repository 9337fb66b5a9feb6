#ifndef ETC_TASKS_CONFIG_CONFIG_FIELDS_H_
#define ETC_TASKS_CONFIG_CONFIG_FIELDS_H_

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "attention/score_storage.h"
#include "base/cpu_limit.h"
#include "base/fields.h"
#include "base/json_reader.h"
#include "etc/config_fields.h"
#include "tasks/config/config.h"

namespace etc {

// The tables of all structs of a configuration, but for RunConfig::model
// (etc/config_fields.h), encoder_decoder (etc/encoder_decoder/config_fields.h)
// and task_options, which a task reads.

// The fields of the file outside its objects.
template <>
struct ConfigTable<RunConfig> {
  static constexpr char kObject[] = "";
  static constexpr auto kFields = std::make_tuple(
      Field("task", &RunConfig::task,
            "the task, by the name of its folder in [tasks](../tasks); the "
            "object of this name holds the task's own options"),
      Field("init", &RunConfig::init,
            "weights to start from ([of any origin](weights.md)), of a run "
            "the best checkpoint that it has at the start (`train.keep_best` "
            "keeps it while that run goes on); their model is used where "
            "`model` says nothing, BERT's lifted to ETC unless "
            "`model.has_long_tokens` is false; that of `translation` has to "
            "say it",
            {.names_files = true}),
      Field("residual_attention", &RunConfig::residual_attention,
            "`\"off\"`, `\"sum\"`, `\"mean\"`, `\"decay\"` or `\"gate\"`; if "
            "absent, that of the model, which also has `model.residual_decay` "
            "and `model.residual_gate_init`",
            {.one_of = kResidualModes}),
      Field("output", &RunConfig::output, "directory of the run",
            {.is_path = true,
             .may_change = "a run's directory may be moved",
             .is_local = true}));
};

template <>
struct ConfigTable<ModelOrigin> {
  static constexpr auto kFields = std::make_tuple(
      Field("preset", &ModelOrigin::preset,
            "a published size: `\"base\"` or `\"large\"` of ETC; "
            "`\"bert_small\"`, `\"bert_base\"`, `\"bert_large\"` or "
            "`\"bert_xlarge\"` of BERT"),
      Field("path", &ModelOrigin::path,
            "an `etc_config.json` instead, or the configuration of a BERT, "
            "which is not lifted then",
            {.is_path = true}));
};

template <>
struct ConfigTable<TokenizerConfig> {
  using C = TokenizerConfig;
  static constexpr char kObject[] = "tokenizer";
  static constexpr absl::string_view kTypes[] = {"wordpiece", "sentencepiece",
                                                 "huggingface", "dictionary"};
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type,
            "`\"wordpiece\"`, `\"sentencepiece\"` or `\"huggingface\"`, [any "
            "`tokenizer.json`](weights.md#any-tokenizerjson); if absent, that "
            "of the vocabulary: a name in `.model` is SentencePiece's, one in "
            "`.json` a `tokenizer.json`'s, any other WordPiece's. "
            "`translation` needs "
            "`\"sentencepiece\"` or `\"dictionary\"` (fairseq's `dict.txt`, "
            "for text in pieces)",
            {.one_of = kTypes}),
      Field("vocabulary", &C::vocabulary,
            "`vocab.txt`, `tokenizer.json`, `vocab.json` beside `merges.txt`, "
            "or a SentencePiece model; if empty, that of `init`",
            {.names_files = true}),
      Field("lower_case", &C::lower_case,
            "WordPiece: fold case and, unless a file says otherwise, strip "
            "accents; if absent, [the files beside the "
            "vocabulary](weights.md#how-a-vocabulary-is-used), or else those "
            "beside `init`, decide, and a value that contradicts them is "
            "refused"),
      Field("split_punctuation", &C::split_punctuation,
            "SentencePiece: word by word, as ETC's \"split punctuation\" "
            "checkpoints"));
};

template <>
struct ConfigTable<DataConfig> {
  using C = DataConfig;
  static constexpr char kObject[] = "data";
  static constexpr absl::string_view kOnBadRecord[] = {"error", "skip"};
  static constexpr auto kFields = std::make_tuple(
      Field("train", &C::train,
            "training data: official files, or patterns of their names as in a "
            "shell (`\"nq-train-??.jsonl.gz\"`), plain or packed by gzip; "
            "`translation`: a file of sources, then one of targets, as often "
            "as needed",
            {.names_files = true}),
      Field("dev", &C::dev, "files or patterns for evaluation",
            {.names_files = true}),
      Field("dev_fraction", &C::dev_fraction,
            "share of the records of `data.train` that is held out for "
            "evaluation if `data.dev` is empty, the same share of each label "
            "(of several, the first decides; `tokens` has none); `classify`, "
            "`glue` and `tokens` only",
            {.least = 0, .below = 1}),
      Field("dev_seed", &C::dev_seed, "chooses the records that are held out",
            {.least = 0}),
      Field("dev_records", &C::dev_records,
            "number and digest of the held-out records, which a run writes "
            "into its checkpoints; a resumed run or an evaluation that finds "
            "others is refused"),
      Field(
          "max_long_length", &C::max_long_length,
          "most long tokens of an example; longer ones are truncated. With "
          "absolute positions at most `model.max_absolute_position_embeddings`",
          {.least = 1, .most = 1 << 20, .reads_files = true}),
      Field("max_global_length", &C::max_global_length,
            "most global tokens (all tokens of BERT); the same bound",
            {.least = 1, .most = 1 << 20, .reads_files = true}),
      Field("workers", &C::workers, "threads that prefetch examples",
            {.least = 1,
             .most = 1024,
             .may_change = "the order stays",
             .is_local = true}),
      Field("cache_megabytes", &C::cache_megabytes,
            "memory for cached examples; at most as much again for prefetched "
            "ones",
            {.least = 0,
             .most = 1e9,
             .may_change = "decides time and memory only",
             .is_local = true}),
      Field("max_record_megabytes", &C::max_record_megabytes,
            "longest record, unpacked",
            {.least = 1,
             .most = 1e6,
             .may_change = "decides only what data are refused",
             .is_local = true,
             .reads_files = true}),
      Field("bucket_batches", &C::bucket_batches,
            "batches cut from one bucket pool of examples sorted by length; a "
            "pool is at most one epoch, and half of the memory",
            {.least = 1, .most = 1e9}),
      Field("on_bad_record", &C::on_bad_record,
            "`\"error\"` or `\"skip\"`: what becomes of a record that is not "
            "as the official format has it",
            {.one_of = kOnBadRecord, .reads_files = true}),
      Field("sentences", &C::sentences,
            "how the documents of WikiHop, `classify` and `tokens`, of "
            "`openkp` without VDOM, and the contexts of `squad` are split: by "
            "ICU, or as the official program of WikiHop does, by the tables of "
            "NLTK's Punkt in this folder "
            "(`nltk_data/tokenizers/punkt_tab/english`)",
            {.names_files = true, .no_file = "icu"}));
};

template <>
struct ConfigTable<OptimizerConfig> {
  using C = OptimizerConfig;
  static constexpr char kObject[] = "optimizer";
  static constexpr absl::string_view kTypes[] = {"bert_adamw", "lamb", "adamw",
                                                 "fairseq_adam", "radam"};
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type,
            "official, without bias correction; or `\"lamb\"`, `\"adamw\"` "
            "(LibTorch's), `\"fairseq_adam\"`, `\"radam\"` "
            "([both](translation.md) of fairseq)",
            {.one_of = kTypes}),
      Field("weight_decay", &C::weight_decay,
            "decay of the weights, but not of biases, norms, gates, alphas and "
            "omegas (`model.sublayer`); `fairseq_adam` and `radam` decay all",
            {.least = 0}),
      Field("beta1", &C::beta1, "decay of the mean of gradients",
            {.least = 0, .below = 1}),
      Field("beta2", &C::beta2, "decay of the mean of squared gradients",
            {.least = 0, .below = 1}),
      Field("epsilon", &C::epsilon,
            "added to the root of that mean before the division", {.above = 0}),
      Field("clip_norm", &C::clip_norm,
            "largest norm of the gradient; 0: no clipping", {.least = 0}));
};

template <>
struct ConfigTable<ScheduleConfig> {
  using C = ScheduleConfig;
  static constexpr char kObject[] = "schedule";
  static constexpr absl::string_view kTypes[] = {"poly", "linear", "cosine",
                                                 "constant", "inverse_sqrt"};
  static constexpr auto kFields = std::make_tuple(
      Field("type", &C::type,
            "decay after the warm-up: `\"poly\"` (official: (1 - t/N)^power of "
            "all N updates), `\"linear\"` or `\"cosine\"` from the full rate "
            "to `min_learning_rate`, `\"constant\"`, or `\"inverse_sqrt\"` of "
            "the updates so far",
            {.one_of = kTypes}),
      Field("warmup_proportion", &C::warmup_proportion,
            "share of the steps with a rising rate", {.least = 0, .most = 1}),
      Field("warmup_steps", &C::warmup_steps,
            "updates with a rising rate, instead of a share",
            {.least = 0, .most = 1e12}),
      Field("poly_power", &C::poly_power,
            "power of the decay to 0 of `\"poly\"`", {.least = 0}),
      Field("start_warmup_step", &C::start_warmup_step,
            "update at which the warm-up begins; the rate before it is "
            "negative, as in the official code",
            {.least = 0, .most = 1e12}),
      Field("initial_learning_rate", &C::initial_learning_rate,
            "the rate at which the warm-up begins", {.least = 0}),
      Field("min_learning_rate", &C::min_learning_rate,
            "the rate to which `\"linear\"` and `\"cosine\"` decay",
            {.least = 0}));
};

template <>
struct ConfigTable<TrainConfig> {
  using C = TrainConfig;
  static constexpr char kObject[] = "train";
  static constexpr absl::string_view kPrecisions[] = {"fp32", "bf16"};
  static constexpr auto kScoreStorages = NamesOf(kScoreStorageNames);
  static constexpr absl::string_view kMemoryPlans[] = {"auto", "kept", "layers",
                                                       "files", "slices"};
  static constexpr absl::string_view kBackends[] = {"gloo", "nccl"};
  static constexpr absl::string_view kDirections[] = {"auto", "max", "min"};
  static constexpr auto kFields = std::make_tuple(
      Field("learning_rate", &C::learning_rate,
            "the highest learning rate, at the end of the warm-up",
            {.above = 0}),
      Field("gate_learning_rate_factor", &C::gate_learning_rate_factor,
            "the learning rate of gates is so many times that of the others",
            {.above = 0, .most = 1e9}),
      Field("learning_rate_factors", &C::learning_rate_factors,
            "the same for parameters by their names: `[{\"parameters\": "
            "\"encoder.*\", \"factor\": 0.1}]`, with `*`, `?` and `[ab]`; the "
            "last one that names a parameter decides, over the factor of gates "
            "too",
            {.type_text = "list of objects"}),
      Field("frozen", &C::frozen,
            "names of parameters that are not trained: "
            "`[\"encoder.embedding.*\", \"encoder.layers.0.*\"]`; they take no "
            "gradient and no state of the optimizer. The names are those in "
            "`model.safetensors`"),
      Field("batch_size", &C::batch_size,
            "examples per update; `translation`: batches of "
            "`translation.max_tokens`, 1 if absent",
            {.least = 1, .most = 1e9}),
      Field("micro_batch_size", &C::micro_batch_size,
            "examples computed at a time; determines the memory",
            {.least = 1, .most = 1e9}),
      Field("epochs", &C::epochs, "passes over the training data",
            {.above = 0, .most = 1e6}),
      Field("steps", &C::steps,
            "updates, instead of epochs; 0: the model of `init` is evaluated "
            "and saved as it is",
            {.least = 0, .most = 1e12}),
      Field("num_train_examples", &C::num_train_examples,
            "examples of an epoch (`translation`: batches); absent: one a "
            "record. If records have several, take what `realetc inspect "
            "--config CONFIG --count` prints; a run warns. If each has one, a "
            "run warns of more than 5 % difference. Ignored with "
            "`max_examples`",
            {.least = 1, .most = 1e12}),
      Field("max_examples", &C::max_examples,
            "trials: only the first so many records of `data.train`, after "
            "`data.dev_fraction`; `epochs` counts their examples. 0: all",
            {.least = 0, .most = 1e12}),
      Field("evaluate_every", &C::evaluate_every,
            "updates between evaluations; absent: once an epoch; 0: at the end",
            {.least = 0,
             .most = 1e12,
             .may_change = "an evaluation trains nothing"}),
      Field("evaluate_at_start", &C::evaluate_at_start,
            "evaluate the weights that training starts from, too",
            {.may_change = "an evaluation trains nothing"}),
      Field("main_metric", &C::main_metric,
            "score by which checkpoints, seeds and settings are compared, of "
            "those in `metrics.jsonl`: `\"em\"`; empty: the task's own"),
      Field("main_metric_direction", &C::main_metric_direction,
            "`\"max\"`: larger is better; `\"min\"`: smaller is; `\"auto\"`: "
            "`\"min\"` for names that end in `loss`, `perplexity`, `error`, "
            "`error_rate`, `mse`, `rmse`, `mae`, `wer` or `cer`",
            {.one_of = kDirections}),
      Field(
          "early_stopping", &C::early_stopping,
          "the run ends after so many evaluations in a row whose main metric "
          "did not improve; 0: never before its last update",
          {.least = 0, .most = 1e12, .may_change = "it decides only the end"}),
      Field("early_stopping_improvement", &C::early_stopping_improvement,
            "an improvement is a change of more than this",
            {.least = 0, .may_change = "it decides only the end"}),
      Field("checkpoint_every", &C::checkpoint_every,
            "updates between checkpoints; 0: at evaluations, or where there "
            "are none as often as `evaluate_every` says",
            {.least = 0,
             .most = 1e12,
             .may_change = "a checkpoint trains nothing"}),
      Field("checkpoint_minutes", &C::checkpoint_minutes,
            "minutes between checkpoints, beside those by updates and "
            "evaluations, each kept until the next one; 0: none",
            {.least = 0,
             .most = 1e6,
             .may_change = "a checkpoint trains nothing"}),
      Field("keep_best", &C::keep_best,
            "checkpoints to keep with the best scores",
            {.least = 1, .most = 1e6, .may_change = "it trains nothing"}),
      Field("keep_last", &C::keep_last,
            "last checkpoints by updates and evaluations to keep",
            {.least = 1, .most = 1e6, .may_change = "it trains nothing"}),
      Field("evaluation_batch_size", &C::evaluation_batch_size,
            "examples of a batch of an evaluation",
            {.least = 1, .most = 1e9, .may_change = "it trains nothing"}),
      Field("seeds", &C::seeds,
            "one run for each seed; median and standard deviation are reported",
            {.least = 0, .may_change = "each run has a seed of its own"}),
      Field(
          "threads", &C::threads,
          "CPU threads; 0: `OMP_NUM_THREADS`, or else the cores of the process "
          "(its affinity, a control group's quota). More than these cores are "
          "slower, and a run warns of them. No result depends on it",
          {.least = 0,
           .most = kMostThreads,
           .may_change = "no bit depends on it",
           .is_local = true}),
      Field("device", &C::device,
            "`\"cpu\"`, `\"cuda\"` or, for the second CUDA device, "
            "`\"cuda:1\"`; `\"auto\"` is CUDA where there is a device, else "
            "the CPU; of several processes on a machine each takes a device of "
            "its own. A run says which it took (see [CUDA devices](cuda.md))",
            {.may_change = "a run may be moved", .is_local = true}),
      Field(
          "precision", &C::precision,
          "or `\"bf16\"`: both factors of the products of linear layers and "
          "of attention are rounded, for CPUs with AVX512-BF16 or AMX and for "
          "[CUDA devices](cuda.md); on the CPU also what backward keeps of the "
          "input of `gelu`, on CUDA devices the results of linear layers. "
          "Weights, sums, softmax, scores and all else stay "
          "float32. On a CPU without fast products of bfloat16 attention stays "
          "float32. AVX512-BF16 without AMX is faster than float32 on some "
          "CPUs (Zen 4) and slower on others: a run times a product there, and "
          "warns if it is slower",
          {.one_of = kPrecisions}),
      Field(
          "score_storage", &C::score_storage,
          "residual scores in one buffer that backward runs backwards "
          "(`\"reverse\"`) or fills again (`\"recompute\"`), or one for each "
          "layer (`\"store\"`). `\"reverse\"` rounds: over 24 layers gradients "
          "are off by about 1e-7 times the largest score, so 1e-5 at 170 and "
          "3e-4 at 3,400; where scores pass 1,000 a run says so once. "
          "`\"recompute\"` is exact, but n layers compute n(n - 1)/2 layers' "
          "scores more: attention has 1.8 times the products over 12 layers, "
          "2.6 times over 24",
          {.one_of = kScoreStorages}),
      Field(
          "memory_plan", &C::memory_plan,
          "what is kept of a forward pass for the backward pass "
          "([longer documents](cost.md#longer-documents)): all of it "
          "(`\"kept\"`); each layer's input (`\"layers\"`); that in files, and "
          "layers computed some heads or tokens at a time (`\"files\"`); or "
          "the same in memory (`\"slices\"`). `\"auto\"` takes, for each "
          "micro-batch, the first of these that fits in memory; on CUDA "
          "devices it keeps all, and `\"layers\"` may be asked for; "
          "`translation` has `\"kept\"` alone",
          {.one_of = kMemoryPlans, .may_change = "it changes rounding alone"}),
      Field(
          "memory_gigabytes", &C::memory_gigabytes,
          "gigabytes that `train.memory_plan` `\"auto\"` may use; 0: all that "
          "the process may have",
          {.least = 0,
           .most = 1e6,
           .may_change = "it changes rounding alone",
           .is_local = true}),
      Field(
          "memory_directory", &C::memory_directory,
          "directory for `train.memory_plan` `\"files\"`, on a fast disk; the "
          "files have no names and are gone with the run. If empty, "
          "`\"auto\"` does without",
          {.is_path = true,
           .may_change = "it changes no number",
           .is_local = true}),
      Field("watch_scores", &C::watch_scores,
            "updates between [statistics of the attention "
            "scores](#watching-attention-scores) in `metrics.jsonl`; 0: none, "
            "at no cost",
            {.least = 0, .most = 1e12, .may_change = "it trains nothing"}),
      Field("tensorboard", &C::tensorboard,
            "writes the metrics for TensorBoard, too: scalars, the "
            "configuration, a histogram of gates (see "
            "[TensorBoard](#tensorboard))",
            {.may_change = "it trains nothing"}),
      Field("shard_optimizer", &C::shard_optimizer,
            "[several processes](distributed.md): each rank keeps the "
            "optimizer's state of its shard of the parameters and updates that "
            "shard (ZeRO, stage 1): less memory, the same updates",
            {.may_change = "no update depends on it"}),
      Field("backend", &C::backend,
            "[several processes](distributed.md): all-reduce on CUDA devices "
            "by `\"gloo\"` or `\"nccl\"`; on CPUs it is Gloo",
            {.one_of = kBackends, .may_change = "a run may be moved"}),
      Field("timeout_s", &C::timeout_s,
            "[several processes](distributed.md): seconds that a rank waits "
            "for the others",
            {.above = 0,
             .most = 1e6,
             .may_change = "trains nothing",
             .is_local = true}));
};

// Calls visit("train.steps", field, value) for each field of all of them.
template <typename Config, typename Visitor>
void ForEachConfigField(Config& config, Visitor visit) {
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

// The same of a list of objects {"parameters": "head.*", "factor": 0.1};
// factors should be above 0.
void ReadValue(const std::string& field, const FieldRule& rule,
               JsonObjectReader* reader,
               std::vector<LearningRateFactor>* factors);

}  // namespace etc

#endif  // ETC_TASKS_CONFIG_CONFIG_FIELDS_H_
