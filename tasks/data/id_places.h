#ifndef ETC_TASKS_DATA_ID_PLACES_H_
#define ETC_TASKS_DATA_ID_PLACES_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace etc {

// The ids of a data set or of a file of predictions, each with the place of its
// record. Gold and predictions are matched by them, so an id that comes again
// is a mistake, in one file as over several.
class IdPlaces {
 public:
  // Takes the id of the record at `where` ("dev.json: record 3").
  //   kInvalidArgument  "<where>: the id "q1" should occur once, but is that of
  //                     <earlier place> too"
  absl::Status Add(const std::string& id, const std::string& where);

 private:
  std::map<std::string, std::string> places_;
};

// The file of a place: "dev.csv" of "dev.csv:7", "dev.jsonl" of "dev.jsonl:
// record 7".
std::string FileOfPlace(absl::string_view where);

}  // namespace etc

#endif  // ETC_TASKS_DATA_ID_PLACES_H_
