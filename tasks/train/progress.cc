#include "tasks/train/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace etc {
namespace {

// Three digits or so: "0.71", "8.1", "123", "12.3k".
std::string FormatRate(double rate) {
  if (rate >= 1000) {
    return absl::StrFormat("%.1fk", rate / 1000);
  }
  return absl::StrFormat("%.*f", rate >= 100 ? 0 : rate >= 1 ? 1 : 2, rate);
}

// Formats with two digits, or as many more as it takes to see an update: a
// large data set would stay at 0.00.
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

std::string FormatProgress(const Progress& progress, size_t columns) {
  // In the order of the line; those of a higher rank are left out first.
  struct Part {
    int rank;
    std::string text;
  };
  std::vector<Part> parts = {
      {0, absl::StrCat("step ", progress.step, "/", progress.num_steps)},
      {4, absl::StrCat("  epoch ", FormatEpoch(progress))},
      {1, absl::StrFormat("  loss %.4f", progress.loss)},
      {7, absl::StrFormat("  lr %.1e", progress.learning_rate)},
      {3, absl::StrCat("  ", FormatRate(progress.examples_per_second),
                       " examples/s")},
      {8,
       absl::StrCat("  ", FormatRate(progress.tokens_per_second), " tokens/s")},
      {9, absl::StrFormat("  waiting %.0f%%", 100 * progress.waiting)},
      {2, absl::StrCat("  ", FormatDuration(progress.seconds_left), " left")}};
  if (progress.later_steps > 0) {
    parts.push_back(
        {5, absl::StrCat(", ", FormatDuration(progress.seconds_left_in_all),
                         " with the runs after it")});
  }
  if (progress.lacks_evaluations) {
    parts.push_back({6, ", without evaluations"});
  }
  constexpr int kHighest = 9;
  std::string line;
  for (int highest = kHighest; highest >= 0; --highest) {
    line.clear();
    for (const Part& part : parts) {
      line += part.rank <= highest ? part.text : "";
    }
    if (line.size() < columns) {
      break;
    }
  }
  return line.substr(0, std::max<size_t>(columns, 1) - 1);
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
  const auto time_of = [&](int64_t updates, int64_t evaluations) {
    return static_cast<double>(updates) * seconds +
           static_cast<double>(evaluations) * evaluation_seconds_.value_or(0);
  };
  progress->seconds_left =
      time_of(progress->num_steps - progress->step, progress->evaluations);
  progress->seconds_left_in_all =
      progress->seconds_left +
      time_of(progress->later_steps, progress->later_evaluations);
  progress->lacks_evaluations =
      !evaluation_seconds_.has_value() && progress->evaluations > 0;
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

void StreamReporter::Warn(absl::string_view text) {
  Message(absl::StrCat("realetc: warning: ", text));
}

void StreamReporter::Opening(const OpeningProgress& progress) {
  const auto bytes = static_cast<double>(progress.bytes);
  const auto num_bytes = static_cast<double>(progress.num_bytes);
  ShowWithTimeLeft(
      "looking through the data",
      absl::StrFormat("%.2f of %.2f GB", bytes / 1e9, num_bytes / 1e9),
      bytes / std::max(1.0, num_bytes));
}

void StreamReporter::Checking(const CountingProgress& progress) {
  ShowPass("checking the data", "records", progress);
}

void StreamReporter::Counting(const CountingProgress& progress) {
  ShowPass("counting examples", "records", progress);
}

void StreamReporter::Analysing(const CountingProgress& progress) {
  ShowPass("analysing attention", "records", progress);
}

void StreamReporter::Reading(const CountingProgress& progress) {
  ShowPass("reading the record", "layers", progress);
}

void StreamReporter::CheckingTexts(const CountingProgress& progress) {
  ShowPass("checking the texts", "documents", progress);
}

void StreamReporter::Embedding(const EmbeddingProgress& progress) {
  ShowWithTimeLeft("embedding",
                   absl::StrFormat("%d of %d documents", progress.documents,
                                   progress.num_documents),
                   progress.share);
}

void StreamReporter::Translating(const CountingProgress& progress) {
  ShowPass("translating", "lines", progress);
}

void StreamReporter::ShowPass(const std::string& what, const std::string& unit,
                              const CountingProgress& progress) {
  ShowWithTimeLeft(
      what,
      absl::StrFormat("%d of %d %s", progress.records, progress.num_records,
                      unit),
      static_cast<double>(progress.records) /
          std::max(1.0, static_cast<double>(progress.num_records)));
}

void StreamReporter::Tokenizing(const TokenizingProgress& progress) {
  const auto bytes = static_cast<double>(progress.bytes);
  const auto num_bytes = static_cast<double>(progress.num_bytes);
  ShowWithTimeLeft(
      "tokenizing",
      absl::StrFormat("%.2f of %.2f GB, %.1f MB/s", bytes / 1e9,
                      num_bytes / 1e9, progress.bytes_per_second / 1e6),
      bytes / std::max(1.0, num_bytes));
}

void StreamReporter::ShowWithTimeLeft(const std::string& what,
                                      const std::string& amount, double share) {
  constexpr double kSilent = 1;
  const double now = clock_();
  since_ = since_.value_or(now);
  const double seconds = now - *since_;
  if (share > 0 && seconds >= kSilent && IsDue()) {
    const std::string left =
        FormatDuration(seconds * (1 - share) / share) + " left";
    const std::string percent = absl::StrFormat("%.0f%%", 100 * share);
    Show({absl::StrCat(what, ": ", amount, ", ", left),
          absl::StrCat(what, ": ", percent, ", ", left),
          absl::StrCat(percent, ", ", left)});
  }
  if (share >= 1) {
    since_.reset();
    ClearLine();
  }
}

void StreamReporter::ClearLine() {
  if (width_ > 0) {
    *stream_ << '\r' << std::string(std::min(width_, Room()), ' ') << '\r'
             << std::flush;
    width_ = 0;
  }
}

void StreamReporter::Update(const Progress& progress) {
  const bool at_end = progress.step == progress.num_steps;
  if (at_end || IsDue()) {
    Show({FormatProgress(progress, Room() + 1)});
  }
  if (at_end && width_ > 0) {
    *stream_ << std::endl;
    width_ = 0;
  }
}

void StreamReporter::Evaluating(const EvaluationProgress& progress) {
  if (IsDue()) {
    const std::string done = absl::StrCat(
        progress.predicts ? "predicting: " : "evaluating: ", progress.records,
        " of ", progress.num_records);
    Show({absl::StrCat(done, " records, ",
                       FormatDuration(progress.seconds_left), " left"),
          done});
  }
  if (progress.records == progress.num_records) {
    ClearLine();
  }
}

bool StreamReporter::IsDue() const { return clock_() >= due_; }

size_t StreamReporter::Room() const {
  const size_t columns = style_ == Style::kTerminal && columns_ != nullptr
                             ? columns_()
                             : std::numeric_limits<size_t>::max();
  // In the last column some terminals begin a new line.
  return std::max<size_t>(columns, 2) - 1;
}

void StreamReporter::Show(const std::vector<std::string>& lines) {
  const size_t room = Room();
  const auto fits = std::find_if(
      lines.begin(), lines.end(),
      [&](const std::string& line) { return line.size() <= room; });
  const std::string line =
      fits != lines.end() ? *fits : lines.back().substr(0, room);
  if (style_ == Style::kTerminal) {
    constexpr double kRefresh = 0.2;
    due_ = clock_() + kRefresh;
    // The terminal may have become narrower.
    const size_t before = std::min(width_, room);
    const size_t shorter = before > line.size() ? before - line.size() : 0;
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
