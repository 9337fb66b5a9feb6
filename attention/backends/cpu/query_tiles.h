#ifndef ETC_ATTENTION_BACKENDS_CPU_QUERY_TILES_H_
#define ETC_ATTENTION_BACKENDS_CPU_QUERY_TILES_H_

#include <cstdint>
#include <vector>

#include "attention/attention_problem.h"

namespace etc {

// Queries [begin, end) of one example, computed together in each head.
struct QueryTile {
  int64_t begin = 0;
  int64_t end = 0;
  // The other key that divides the example here: queries before `begin` see
  // keys before it alone, queries from `begin` on see none of these. -1: there
  // is none.
  int64_t first_key = -1;
};

// Tiles of an example, ascending: all of its queries. Packed documents, or
// other runs of queries that have no key in common, are tiles of their own
// unless several are short; all other tiles have the same length. Depends on
// sizes and the pattern alone.
std::vector<QueryTile> QueryTiles(const AttentionProblem& problem,
                                  int64_t batch);

// Tokens that are computed together where nothing divides them, in each of
// `heads` heads of all batch entries: depends on nothing but these numbers.
int64_t TileLength(int64_t tokens, int64_t heads);

}  // namespace etc

#endif  // ETC_ATTENTION_BACKENDS_CPU_QUERY_TILES_H_
