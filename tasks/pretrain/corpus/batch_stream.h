#ifndef ETC_TASKS_PRETRAIN_CORPUS_BATCH_STREAM_H_
#define ETC_TASKS_PRETRAIN_CORPUS_BATCH_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tasks/pretrain/corpus/batch_tokenizer.h"
#include "tasks/pretrain/corpus/corpus_reader.h"

namespace etc {

// Tokenizes a corpus in worker threads and returns the batches in the order of
// the corpus, whichever thread finishes first. Each worker reads a batch, which
// is one after the other, and tokenizes it beside the others. At most two
// batches a worker, and two more, are on their way.
class BatchStream {
 public:
  struct Options {
    int64_t threads = 1;
    // True ends the waiting for batches. May be null.
    const std::atomic<bool>* stop = nullptr;
  };

  // Objects behind pointers must outlive the stream.
  BatchStream(CorpusReader* reader, const CorpusTokenizer* tokenizer,
              const BatchTokenizerOptions* tokenizer_options,
              const Options& options);
  // Waits for the batches that workers have begun; no others are read.
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // The next batch, or nothing behind the last. After an error there is no
  // other batch. Rethrows what a worker threw.
  //   errors of CorpusReader::Next and BatchTokenizer::Tokenize, or
  //   kCancelled          `options.stop` is true
  //   kResourceExhausted  the threads could not be started
  absl::StatusOr<std::optional<TokenizedBatch>> Next();

 private:
  struct Slot {
    absl::StatusOr<TokenizedBatch> result;
    std::exception_ptr thrown;
    bool is_done = false;
  };

  void StartWorkers();
  void StopWorkers();
  void WorkUntilStopped();
  // Reads the next batch and makes a slot for it; null at the end, and when the
  // stream was stopped. An error has a slot too, and ends the reading.
  Slot* ReadBatch(CorpusBatch* batch);
  void Finish(Slot* slot);

  CorpusReader* const reader_;
  const CorpusTokenizer* const tokenizer_;
  const BatchTokenizerOptions* const tokenizer_options_;
  const Options options_;
  absl::Status started_;

  // Held by the worker that reads; before mutex_.
  std::mutex reading_;
  std::mutex mutex_;
  std::condition_variable may_read_;
  std::condition_variable is_done_;
  // Guarded by mutex_, except that a slot that is not done belongs to a worker.
  std::deque<Slot> slots_;  // in the order of the corpus
  bool at_end_ = false;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace etc

#endif  // ETC_TASKS_PRETRAIN_CORPUS_BATCH_STREAM_H_
