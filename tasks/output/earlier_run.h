#ifndef ETC_TASKS_OUTPUT_EARLIER_RUN_H_
#define ETC_TASKS_OUTPUT_EARLIER_RUN_H_

namespace etc {

// Fate of runs that are in the output directory already.
enum class EarlierRun {
  // They are an error.
  kRefuse,
  // They go on where they stopped, and are kept as they are if they are
  // finished. An error where none was begun.
  kResume,
  // The same, and runs begin where none was begun.
  kResumeOrBegin,
  // They are removed when all checks of the new ones have passed. Not together
  // with a grid.
  kOverwrite,
};

// Returns true if runs go on from their checkpoints.
constexpr bool Resumes(EarlierRun earlier) {
  return earlier == EarlierRun::kResume ||
         earlier == EarlierRun::kResumeOrBegin;
}

}  // namespace etc

#endif  // ETC_TASKS_OUTPUT_EARLIER_RUN_H_
