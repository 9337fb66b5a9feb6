#ifndef ETC_TASKS_TRAIN_SCORE_TABLE_H_
#define ETC_TASKS_TRAIN_SCORE_TABLE_H_

#include <string>
#include <utility>
#include <vector>

namespace etc {

// Named scores as people and programs read them; shares are in [0, 1]. `main`
// is the name of the metric by which checkpoints are compared.

// "0.7921", with 4 decimals; where these say little of it, 4 digits:
// "1.234e-05".
std::string FormatScore(double score);

// "accuracy 0.7921"; "no accuracy" if that is not among the scores.
std::string FormatMainScore(
    const std::vector<std::pair<std::string, double>>& scores,
    const std::string& main);

// A line for each score, the main one first:
//
//   joint_f1  0.7357  (main metric)
//   em        0.6000
//
// A single score has no remark.
std::string FormatScoreTable(
    const std::vector<std::pair<std::string, double>>& scores,
    const std::string& main);

// One JSON object on one line, in the order of the scores, with as many digits
// as it takes to read back the same numbers. Those that JSON has not are
// strings, "inf" or "nan".
std::string ScoresToJson(
    const std::vector<std::pair<std::string, double>>& scores);

// The same scores, the main one first.
std::vector<std::pair<std::string, double>> WithMainFirst(
    std::vector<std::pair<std::string, double>> scores,
    const std::string& main);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_SCORE_TABLE_H_
