#ifndef ETC_TASKS_PRETRAIN_TASK_H_
#define ETC_TASKS_PRETRAIN_TASK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/pretrain/corpus/corpus_tokenizer.h"
#include "tasks/pretrain/corpus/token_store.h"
#include "tasks/pretrain/examples/corpus_part.h"
#include "tasks/pretrain/pretrain_options.h"
#include "tasks/pretrain/special_tokens.h"
#include "tasks/task/task.h"
#include "tasks/task/task_entry.h"

namespace etc {

// Pre-training on token stores (doc/pretraining.md): the field "task" is
// kPretrainingTask (etc/weights/pretraining_parameters.h). Its data are written
// by `realetc tokenize`; if data.dev is empty, some documents of data.train are
// held out by their hash: at least one, or two of one store for the next
// sentence, where a store has as many more (HoldOutSmallest).
class PretrainTask final : public EncoderTask {
 public:
  //   kInvalidArgument  ReadPretrainOptions; a vocabulary without the pieces
  //                     that are needed; a model without the ids
  static absl::StatusOr<std::unique_ptr<Task>> Make(
      const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

  // Stores of which no document is left are left out where another has some.
  //   kInvalidArgument     a store is named twice
  //   kFailedPrecondition  a store has another vocabulary, or no document is
  //                        left of all of them
  absl::StatusOr<std::unique_ptr<ExampleSource>> Open(
      const DataRequest& request) const override;
  bool holds_out() const override { return options_.development_one_in > 0; }
  // Describes the documents left out of each store, and the accuracy of always
  // answering the most frequent token of the first; warns if whole words leave
  // few masks, or are not known, if data.train has documents of data.dev, and
  // if data.max_global_length ends sequences long before data.max_long_length.
  // `train` and `dev` are made by Open.
  //   kInvalidArgument     the configuration asks for whole words, but no piece
  //                        of the vocabulary continues one
  //   kFailedPrecondition  CheckWholeWordMasks; an objective of which the data
  //                        have nothing: hidden sentences without a window of
  //                        two, the next sentence without a document of two
  absl::StatusOr<Notices> DescribeData(const ExampleSource& train,
                                       const ExampleSource& dev) const override;
  std::shared_ptr<TaskHead> MakeHead() const override;
  std::unique_ptr<TaskPredictions> MakePredictions() const override;
  std::string main_metric() const override { return "masked_lm_loss"; }
  std::vector<GlobalTokenName> GlobalTokenNames() const override;
  std::string Describe(const Example& example) const override;

 private:
  PretrainTask(const RunConfig& config, PretrainOptions options,
               CorpusTokenizer tokenizer, SpecialTokens special);

  // A store's examples, a line about them, and a warning that they are far
  // shorter than configured; empty: they are not.
  struct Opened {
    std::unique_ptr<ExampleSource> source;
    std::string description;
    std::string warning = "";
    // True if a document, or a window of ETC, has two sentences.
    bool has_neighbours = false;
  };
  absl::StatusOr<std::shared_ptr<const TokenStore>> OpenStore(
      const std::string& path) const;
  // Opens the part of all stores at `paths`.
  absl::StatusOr<std::unique_ptr<ExampleSource>> OpenParts(
      const std::vector<std::string>& paths,
      const CorpusPartOptions& asked) const;
  absl::StatusOr<Opened> OpenPart(std::shared_ptr<const TokenStore> store,
                                  const CorpusPartOptions& part) const;
  absl::StatusOr<Opened> OpenPairs(std::shared_ptr<const TokenStore> store,
                                   const CorpusPartOptions& part) const;
  absl::StatusOr<Opened> OpenPacked(std::shared_ptr<const TokenStore> store,
                                    const CorpusPartOptions& part) const;
  // Checks that the training data have what the objective predicts.
  absl::Status CheckObjective(bool has_neighbours) const;

  const RunConfig config_;
  const PretrainOptions options_;
  const CorpusTokenizer tokenizer_;
  const SpecialTokens special_;
};

// Its entry, as those of the registry.
TaskEntry PretrainEntry();

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_TASK_H_
