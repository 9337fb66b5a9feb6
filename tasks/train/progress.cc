#include "tasks/train/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/counted.h"

namespace etc {
namespace {

// Three digits or so: "0.71", "8.1", "123", "12.3k".
std::string FormatRate(double rate) {
  if (rate >= 1000) {
    return absl::StrFormat("%.1fk", rate / 1000);
  }
  return absl::StrFormat("%.*f", rate >= 100 ? 0 : rate >= 1 ? 1 : 2, rate);
}

// With two digits, or as many more as it takes to see an update: a large data
// set would stay at 0.00.
std::string FormatEpoch(const Progress& progress) {
  constexpr int kMost = 7;
  const double per_update =
      progress.epoch / static_cast<double>(std::max<int64_t>(1, progress.step));
  int digits = 2;
  // 0.999 instead of 1: a tenth is a little less in binary.
  for (double shown = per_update * 100; digits < kMost && shown < 0.999;
       shown *= 10) {
    ++digits;
  }
  return absl::StrFormat("%.*f", digits, progress.epoch);
}

// "1:02:03" or "2:03".
std::string FormatDuration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const std::string rest =
      absl::StrFormat("%02d:%02d", whole / 60 % 60, whole % 60);
  if (whole >= 3600) {
    return absl::StrCat(whole / 3600, ":", rest);
  }
  return rest[0] == '0' ? rest.substr(1) : rest;
}

}  // namespace

std::string FormatProgress(const Progress& progress) {
  std::string line = absl::StrFormat(
      "step %d/%d  epoch %s  loss %.4f  lr %.1e  %s examples/s  "
      "%s tokens/s  waiting %.0f%%  %s left",
      progress.step, progress.num_steps, FormatEpoch(progress), progress.loss,
      progress.learning_rate, FormatRate(progress.examples_per_second),
      FormatRate(progress.tokens_per_second), 100 * progress.waiting,
      FormatDuration(progress.seconds_left));
  if (progress.later_steps > 0) {
    absl::StrAppend(&line, ", ", FormatDuration(progress.seconds_left_in_all),
                    " with the runs after it");
  }
  return line;
}

void ProgressMeter::Add(const Update& update) {
  constexpr double kKept = 0.95;
  const auto add = [](double value, double* sum) {
    *sum = kKept * *sum + (1 - kKept) * value;
  };
  add(update.loss, &sums_.loss);
  add(update.seconds, &sums_.seconds);
  add(update.seconds_waited, &sums_.seconds_waited);
  add(update.examples, &sums_.examples);
  add(update.tokens, &sums_.tokens);
  add(1, &weight_);
}

void ProgressMeter::Fill(Progress* progress) const {
  progress->loss = sums_.loss / weight_;
  progress->examples_per_second = sums_.examples / sums_.seconds;
  progress->tokens_per_second = sums_.tokens / sums_.seconds;
  progress->waiting = sums_.seconds_waited / sums_.seconds;
  const double seconds = sums_.seconds / weight_;  // of an update
  progress->seconds_left =
      static_cast<double>(progress->num_steps - progress->step) * seconds;
  progress->seconds_left_in_all =
      progress->seconds_left +
      static_cast<double>(progress->later_steps) * seconds;
}

double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void StreamReporter::Message(absl::string_view text) {
  ClearLine();
  *stream_ << text << std::endl;
}

void StreamReporter::Opening(const OpeningProgress& progress) {
  const auto bytes = static_cast<double>(progress.bytes);
  const auto num_bytes = static_cast<double>(progress.num_bytes);
  ShowWithTimeLeft(absl::StrFormat("looking through the data: %.2f of %.2f GB",
                                   bytes / 1e9, num_bytes / 1e9),
                   bytes / std::max(1.0, num_bytes));
}

void StreamReporter::Counting(const CountingProgress& progress) {
  ShowWithTimeLeft(
      absl::StrFormat("counting examples: %d of %d records", progress.records,
                      progress.num_records),
      static_cast<double>(progress.records) /
          std::max(1.0, static_cast<double>(progress.num_records)));
  if (progress.records == progress.num_records) {
    ClearLine();
  }
}

void StreamReporter::Tokenizing(const TokenizingProgress& progress) {
  const auto bytes = static_cast<double>(progress.bytes);
  const auto num_bytes = static_cast<double>(progress.num_bytes);
  ShowWithTimeLeft(
      absl::StrFormat("tokenizing: %.2f of %.2f GB, %.1f MB/s", bytes / 1e9,
                      num_bytes / 1e9, progress.bytes_per_second / 1e6),
      bytes / std::max(1.0, num_bytes));
  if (progress.bytes == progress.num_bytes) {
    ClearLine();
  }
}

void StreamReporter::ShowWithTimeLeft(const std::string& what, double share) {
  constexpr double kSilent = 1;
  const double now = clock_();
  since_ = since_.value_or(now);
  const double seconds = now - *since_;
  if (share > 0 && seconds >= kSilent && IsDue()) {
    Show(absl::StrCat(what, ", ", FormatDuration(seconds * (1 - share) / share),
                      " left"));
  }
  if (share >= 1) {
    since_.reset();
  }
}

void StreamReporter::ClearLine() {
  if (width_ > 0) {
    *stream_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
    width_ = 0;
  }
}

void StreamReporter::Update(const Progress& progress) {
  const bool at_end = progress.step == progress.num_steps;
  if (at_end || IsDue()) {
    Show(FormatProgress(progress));
  }
  if (at_end && width_ > 0) {
    *stream_ << std::endl;
    width_ = 0;
  }
}

void StreamReporter::Evaluating(const EvaluationProgress& progress) {
  if (IsDue()) {
    Show(absl::StrCat("evaluating: ", Counted(progress.examples, "example"),
                      " so far, ", Counted(progress.num_records, "record"),
                      " in all"));
  }
}

bool StreamReporter::IsDue() const { return clock_() >= due_; }

void StreamReporter::Show(const std::string& line) {
  if (style_ == Style::kTerminal) {
    constexpr double kRefresh = 0.2;
    due_ = clock_() + kRefresh;
    const size_t shorter = width_ > line.size() ? width_ - line.size() : 0;
    *stream_ << '\r' << line << std::string(shorter, ' ') << std::flush;
    width_ = line.size();
    return;
  }
  // Often at first, then every minute: a log of a day stays readable.
  constexpr double kLongest = 60;
  due_ = clock_() + interval_;
  interval_ = std::min(kLongest, 2 * interval_);
  *stream_ << line << std::endl;
}

}  // namespace etc
