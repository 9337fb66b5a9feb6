#include "tasks/data/id_places.h"

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace etc {

absl::Status IdPlaces::Add(const std::string& id, const std::string& where) {
  const auto [place, is_new] = places_.try_emplace(id, where);
  if (is_new) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": the id ", QuotedName(id), " should occur once, but is that of ",
      place->second, " too"));
}

std::string FileOfPlace(absl::string_view where) {
  return std::string(where.substr(0, where.rfind(':')));
}

}  // namespace etc
