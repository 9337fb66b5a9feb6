#ifndef ETC_TASKS_TRAIN_SCORE_STATISTICS_JSON_H_
#define ETC_TASKS_TRAIN_SCORE_STATISTICS_JSON_H_

#include <vector>

#include "attention/score_statistics.h"
#include "nlohmann/json_fwd.hpp"

namespace etc {

// The object "scores" of a line of metrics.jsonl (doc/configuration.md):
//
//   {"largest": 9.1,
//    "g2g": {"largest": [4.2, 9.1], "new_deviation": [0.8, 0.9],
//            "carried_deviation": [null, 0.8]}, "g2l": ..., "l2g": ...,
//    "l2l": ..., "long_entropy": [3.1, 2.9], "global_entropy": [2.2, 2.4]}
//
// with an array of all layers for each number, null where a layer has none.
// Arrays of which no layer has a number, and blocks without arrays, are left
// out. Numbers have five digits.
nlohmann::ordered_json ScoreStatisticsToJson(
    const std::vector<LayerStatistics>& layers);

}  // namespace etc

#endif  // ETC_TASKS_TRAIN_SCORE_STATISTICS_JSON_H_
