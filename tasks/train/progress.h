#ifndef ETC_TASKS_TRAIN_PROGRESS_H_
#define ETC_TASKS_TRAIN_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace etc {

// Progress of a run, after an update.
struct Progress {
  int64_t step = 0;         // updates made
  int64_t num_steps = 0;    // of the whole run
  int64_t later_steps = 0;  // of the runs after it
  // Evaluations that are left, and about those of the runs after it.
  int64_t evaluations = 0;
  int64_t later_evaluations = 0;
  double epoch = 0;  // passes over the data
  double loss = 0;   // smoothed over the last updates
  double learning_rate = 0;
  double examples_per_second = 0;
  double tokens_per_second = 0;  // long and global, without padding
  // Share of the time in which training waited for examples.
  double waiting = 0;
  double seconds_left = 0;  // estimated
  // The same with the runs after it, if their updates take as long.
  double seconds_left_in_all = 0;
  // True if the seconds left lack evaluations, none of which was timed yet.
  bool lacks_evaluations = false;
};

// "step 12/400  epoch 0.30  loss 1.2345  lr 3.0e-05  8.1 examples/s
// 12.3k tokens/s  waiting 2%  1:02:03 left", on one line; where there are runs
// after it, also "3:02:03 with the runs after it"; "without evaluations" where
// the time left lacks them. Shorter than `columns`: the step, the loss and the
// time left are the last that are left out.
std::string FormatProgress(const Progress& progress,
                           size_t columns = std::numeric_limits<size_t>::max());

// Averages over about the last twenty updates.
class ProgressMeter {
 public:
  struct Update {
    double loss = 0;
    double seconds = 0;
    double seconds_waited = 0;
    double examples = 0;
    double tokens = 0;
  };
  void Add(const Update& update);
  // Notes the time of an evaluation, for those that are left.
  void AddEvaluation(double seconds) { evaluation_seconds_ = seconds; }

  // Sets the loss, the rates, the share of waiting and the time left.
  void Fill(Progress* progress) const;

 private:
  Update sums_;  // weighted
  double weight_ = 0;
  std::optional<double> evaluation_seconds_;  // of the last one
};

// Progress of an evaluation.
struct EvaluationProgress {
  int64_t records = 0;  // done
  int64_t num_records = 0;
  double seconds_left = 0;  // estimated
  // True if it makes predictions, not scores.
  bool predicts = false;
};

// Progress of opening the data files, which reads all of them.
struct OpeningProgress {
  uint64_t bytes = 0;
  uint64_t num_bytes = 0;  // of all files
};

// Progress of a pass over records that trains and predicts nothing.
struct CountingProgress {
  int64_t records = 0;  // done
  int64_t num_records = 0;
};

// Progress of embedding documents.
struct EmbeddingProgress {
  int64_t documents = 0;  // done
  int64_t num_documents = 0;
  // Share of the work done, that on the document that runs included, in [0, 1].
  double share = 0;
};

// Progress of tokenizing a corpus.
struct TokenizingProgress {
  uint64_t bytes = 0;
  uint64_t num_bytes = 0;       // of all files
  double bytes_per_second = 0;  // of text, unpacked
};

// Callbacks of a run: messages, warnings and progress.
class RunReporter {
 public:
  virtual ~RunReporter() = default;

  // Shows a message, such as the weights loaded, the result of an evaluation.
  // Without a newline.
  virtual void Message(absl::string_view text) = 0;
  // Shows a warning of what is allowed, but likely not meant, or goes wrong
  // without ending the run: a message that does not say that it is one.
  virtual void Warn(absl::string_view text) = 0;
  // Show a message or a warning unless it was shown so before.
  void MessageOnce(absl::string_view text) {
    if (shown_once_.emplace(text).second) {
      Message(text);
    }
  }
  void WarnOnce(absl::string_view text) {
    if (shown_once_.emplace(text).second) {
      Warn(text);
    }
  }
  // Called after every MiB or so, by one thread at a time.
  virtual void Opening(const OpeningProgress& /*progress*/) {}
  // Called after every record that is checked, by one thread at a time.
  virtual void Checking(const CountingProgress& /*progress*/) {}
  // Called after every record whose examples are counted.
  virtual void Counting(const CountingProgress& /*progress*/) {}
  // Called after every batch of lines that are translated.
  virtual void Translating(const CountingProgress& /*progress*/) {}
  // Called after every update.
  virtual void Update(const Progress& /*progress*/) {}
  // Called after every batch of an evaluation.
  virtual void Evaluating(const EvaluationProgress& /*progress*/) {}

 private:
  std::set<std::string> shown_once_;
};

// Passes messages and warnings to functions, either of which may be empty, and
// no progress.
class CallbackReporter final : public RunReporter {
 public:
  using Callback = std::function<void(const std::string& line)>;

  CallbackReporter(Callback message, Callback warning)
      : message_(std::move(message)), warning_(std::move(warning)) {}

  void Message(absl::string_view text) override {
    if (message_ != nullptr) {
      message_(std::string(text));
    }
  }
  void Warn(absl::string_view text) override {
    if (warning_ != nullptr) {
      warning_(std::string(text));
    }
  }

 private:
  const Callback message_;
  const Callback warning_;
};

// Seconds on a clock that never goes back.
double SteadySeconds();

// Writes to a stream, which must outlive it. On a terminal progress is one line
// that is overwritten, and shorter than `columns()`, so that it stays one line;
// elsewhere it is a line now and then.
class StreamReporter : public RunReporter {
 public:
  enum class Style { kTerminal, kLines };

  // `columns` is asked for each line; null: of any width.
  StreamReporter(std::ostream* stream, Style style,
                 std::function<double()> clock = SteadySeconds,
                 std::function<size_t()> columns = nullptr)
      : stream_(stream),
        style_(style),
        clock_(std::move(clock)),
        columns_(std::move(columns)) {}
  // On a terminal a line of progress is gone once its work has ended, also by
  // an error.
  ~StreamReporter() override { ClearLine(); }
  StreamReporter(const StreamReporter&) = delete;
  StreamReporter& operator=(const StreamReporter&) = delete;

  void Message(absl::string_view text) override;
  // Writes "realetc: warning: " before the text.
  void Warn(absl::string_view text) override;
  // These are silent for the first second: small files are read by then.
  void Opening(const OpeningProgress& progress) override;
  void Checking(const CountingProgress& progress) override;
  void Counting(const CountingProgress& progress) override;
  void Translating(const CountingProgress& progress) override;
  // After every record or text whose attention is analysed.
  void Analysing(const CountingProgress& progress);
  // Before every layer of the model that reads one record.
  void Reading(const CountingProgress& progress);
  // After every document whose texts are checked.
  void CheckingTexts(const CountingProgress& progress);
  // Before every layer of the model, and after every document.
  void Embedding(const EmbeddingProgress& progress);
  // After every batch of text that is tokenized.
  void Tokenizing(const TokenizingProgress& progress);
  void Update(const Progress& progress) override;
  void Evaluating(const EvaluationProgress& progress) override;

 private:
  // Returns true if another line of progress is due.
  bool IsDue() const;
  // Characters that a line may have.
  size_t Room() const;
  // The first of `lines` that has room, or the last one cut.
  void Show(const std::vector<std::string>& lines);
  // ShowWithTimeLeft() of a pass. `unit` is what is counted: "records".
  void ShowPass(const std::string& what, const std::string& unit,
                const CountingProgress& progress);
  // Shows "<what>: <amount>, 2:30 left", if it is time for it. `share` is done,
  // in [0, 1]; at 1 the line is gone.
  void ShowWithTimeLeft(const std::string& what, const std::string& amount,
                        double share);
  void ClearLine();

  std::ostream* const stream_;
  const Style style_;
  const std::function<double()> clock_;
  const std::function<size_t()> columns_;
  double due_ = 0;
  // Time when the work began that ShowWithTimeLeft() shows; nothing if it is
  // done.
  std::optional<double> since_;
  // Seconds between two lines elsewhere than on a terminal.
  double interval_ = 1;
  // Characters of the line that the next one overwrites; 0: none.
  size_t width_ = 0;
};

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_PROGRESS_H_
