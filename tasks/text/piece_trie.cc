#include "tasks/text/piece_trie.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "tasks/text/unicode.h"

namespace etc {
namespace {

uint64_t EdgeKey(PieceTrie::Node from, char byte) {
  return static_cast<uint64_t>(from) << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

absl::Status CheckPieceSize(absl::string_view piece, const std::string& where) {
  return piece.size() <= kMostPieceBytes
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(
                   absl::StrCat(where, ": a piece may have ", kMostPieceBytes,
                                " bytes, but this one has ", piece.size()));
}

int32_t PieceTrie::Add(absl::string_view piece, int32_t id) {
  Node node = kRoot;
  for (const char byte : piece) {
    const auto [edge, is_new] =
        edges_.try_emplace(EdgeKey(node, byte), static_cast<Node>(ids_.size()));
    if (is_new) {
      ids_.push_back(-1);
    }
    node = edge->second;
  }
  const int32_t present = ids_[node];
  if (present < 0) {
    ids_[node] = id;
  }
  return present;
}

PieceTrie::Node PieceTrie::Step(Node from, char byte) const {
  const auto edge = edges_.find(EdgeKey(from, byte));
  return edge == edges_.end() ? kNowhere : edge->second;
}

PieceTrie::Node PieceTrie::Walk(Node from, absl::string_view bytes) const {
  for (const char byte : bytes) {
    if (from == kNowhere) {
      break;
    }
    from = Step(from, byte);
  }
  return from;
}

int32_t PieceTrie::Id(absl::string_view piece) const {
  const Node node = Walk(kRoot, piece);
  return node == kNowhere ? -1 : ids_[node];
}

PieceTrie::Match PieceTrie::Longest(Node from, absl::string_view text) const {
  Match match;
  Node node = from;
  for (size_t i = 0; i < text.size() && node != kNowhere; ++i) {
    node = Step(node, text[i]);
    if (node != kNowhere && ids_[node] >= 0) {
      match = {ids_[node], static_cast<int64_t>(i) + 1};
    }
  }
  return match;
}

void PieceTrie::VisitPrefixes(
    absl::string_view text, absl::FunctionRef<void(Match match)> visit) const {
  Node node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Step(node, text[i]);
    if (node == kNowhere) {
      return;
    }
    if (ids_[node] >= 0) {
      visit({ids_[node], static_cast<int64_t>(i) + 1});
    }
  }
}

void AddedTokenSearch::Add(const AddedToken& token, absl::string_view content) {
  if (content.empty()) {
    return;
  }
  const auto id = static_cast<int32_t>(token.id);
  trie_.Add(content, id);
  starts_[static_cast<uint8_t>(content.front())] = true;
  tokens_.insert_or_assign(id, token);
}

ByteRange AddedTokenSearch::PlaceOf(int32_t id, absl::string_view text,
                                    ByteRange found, int64_t done) const {
  const AddedToken& token = tokens_.at(id);
  const auto size = static_cast<int64_t>(text.size());
  ByteRange place = found;
  int64_t before = place.begin;
  int64_t after = place.end;
  if (token.single_word &&
      ((before > 0 && IsWordCharacter(PreviousCodePoint(text, &before))) ||
       (after < size && IsWordCharacter(NextCodePoint(text, &after))))) {
    return {};
  }
  for (before = place.begin; token.lstrip && before > done;) {
    if (!IsWhiteSpace(PreviousCodePoint(text, &before))) {
      break;
    }
    place.begin = std::max(before, done);
  }
  for (after = place.end; token.rstrip && after < size;) {
    if (!IsWhiteSpace(NextCodePoint(text, &after))) {
      break;
    }
    place.end = after;
  }
  return place;
}

void AddedTokenSearch::Split(absl::string_view text, VisitText visit_text,
                             VisitToken visit_token) const {
  // Tokens of white space with `rstrip` share that behind them, so that a run
  // of it takes time by the square of its length; one of 10,000 bytes may.
  constexpr int64_t kMostShared = 100'000'000;
  constexpr int64_t kMostSharedByByte = 100;
  const auto size = static_cast<int64_t>(text.size());
  int64_t shared = 0;
  int64_t done = 0;
  for (int64_t at = 0; !tokens_.empty() && at < size;) {
    const auto index = static_cast<size_t>(at);
    const PieceTrie::Match match =
        starts_[static_cast<uint8_t>(text[index])]
            ? trie_.Longest(PieceTrie::kRoot, text.substr(index))
            : PieceTrie::Match();
    if (match.id < 0) {
      ++at;
      continue;
    }
    const ByteRange place =
        PlaceOf(match.id, text, {.begin = at, .end = at + match.length}, done);
    at += match.length;
    if (place.begin == place.end) {
      continue;
    }
    if (done < place.begin) {
      visit_text({.begin = done, .end = place.begin});
    } else if (done > place.begin) {
      shared += place.end - place.begin;
    }
    if (shared > kMostShared + kMostSharedByByte * size) {
      throw LimitReached(
          absl::StrCat("the added tokens of white space in a text of ", size,
                       " bytes, with rstrip, share too much of it"));
    }
    visit_token(match.id, place);
    done = place.end;
  }
  if (done < size) {
    visit_text({.begin = done, .end = size});
  }
}

}  // namespace etc
