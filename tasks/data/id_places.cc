#include "tasks/data/id_places.h"

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace etc {

std::string FileOfPlace(const std::string& where) {
  return where.substr(0, where.rfind(':'));
}

std::string NumberOfPlace(const std::string& where) {
  return where.substr(where.rfind(' ') + 1);
}

absl::Status IdPlaces::Add(const std::string& id, const std::string& where) {
  return AddTo(/*file=*/"", id, where);
}

absl::Status IdPlaces::AddWithinFile(const std::string& id,
                                     const std::string& where) {
  return AddTo(FileOfPlace(where), id, where);
}

absl::Status IdPlaces::AddTo(const std::string& file, const std::string& id,
                             const std::string& where) {
  const auto [place, is_new] = places_.try_emplace({file, id}, where);
  if (is_new) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": the id ", QuotedName(id), " should occur once, but is that of ",
      place->second, " too"));
}

}  // namespace etc
