#include "tasks/text/piece_trie.h"

#include <cstddef>

namespace etc {
namespace {

uint64_t EdgeKey(PieceTrie::Node from, char byte) {
  return static_cast<uint64_t>(from) << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

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

}  // namespace etc
