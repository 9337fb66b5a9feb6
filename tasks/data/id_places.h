#ifndef ETC_TASKS_DATA_ID_PLACES_H_
#define ETC_TASKS_DATA_ID_PLACES_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace etc {

// The place of a record names it in messages:
//
//   "dev.jsonl: record 7"   the eighth JSON object of a file; "record 7" of no
//                           file
//   "dev.csv:7"             the record that begins in line 7, from 1 on
//   "dev.json: data[3]..."  an element of nested lists
//
// The file of a place: "dev.csv"; of no file, the place as it is.
std::string FileOfPlace(const std::string& where);
// The number of a JSON object in its file, from 0 on: "7".
std::string NumberOfPlace(const std::string& where);

// The ids of a data set or of a file of predictions, each with the place of its
// record. Gold and predictions are matched by them, so an id that comes again
// is a mistake, in one file as over several.
class IdPlaces {
 public:
  // Takes the id of the record at `where` ("dev.json: record 3").
  //   kInvalidArgument  "<where>: the id "q1" should occur once, but is that of
  //                     <earlier place> too"
  absl::Status Add(const std::string& id, const std::string& where);
  // The same of an id that tells the records of its file apart: that of a
  // record of another file is another one.
  absl::Status AddWithinFile(const std::string& id, const std::string& where);

 private:
  absl::Status AddTo(const std::string& file, const std::string& id,
                     const std::string& where);

  // By file (empty: all files) and id.
  std::map<std::pair<std::string, std::string>, std::string> places_;
};

}  // namespace etc

#endif  // ETC_TASKS_DATA_ID_PLACES_H_
