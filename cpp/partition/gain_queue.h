// Units of one side of a bisection, ordered by what moving them gains.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace situate::partition {

// A sorted list in blocks of fixed limits, as the leaves of a B-tree are: the entries of a block
// lie side by side, so an exchange that looks at many units reads memory in order.
class GainQueue {
 public:
  // Minus the gain of moving a unit, and the unit: the largest gain comes first.
  using Entry = std::pair<double, int>;

  // Takes these entries in place of all before.
  void assign(std::vector<Entry> entries) {
    std::sort(entries.begin(), entries.end());
    blocks_.clear();
    limits_.clear();
    const auto count = static_cast<ptrdiff_t>(entries.size());
    for (ptrdiff_t begin = 0; begin < count; begin += full)
      append({entries.begin() + begin, entries.begin() + std::min(begin + full, count)});
  }

  void insert(Entry entry) {
    if (blocks_.empty()) return append({entry});
    const auto at = block_of(entry);
    auto& block = blocks_[at];
    block.insert(std::lower_bound(block.begin(), block.end(), entry), entry);
    if (block.size() == 2 * full) split(at);
  }
  // Takes out an entry, which must be among these.
  void erase(Entry entry) {
    const auto at = block_of(entry);
    auto& block = blocks_[at];
    block.erase(std::lower_bound(block.begin(), block.end(), entry));
    if (!block.empty()) return;
    blocks_.erase(blocks_.begin() + at);
    limits_.erase(limits_.begin() + at);
  }

  bool empty() const { return blocks_.empty(); }
  // The entry of the largest gain, of some.
  Entry front() const { return blocks_.front().front(); }
  // Calls `visit` with the entries in order, until it returns false.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& block : blocks_)
      for (const Entry& entry : block)
        if (!visit(entry)) return;
  }

 private:
  using Block = std::vector<Entry>;
  static constexpr ptrdiff_t full = 64;  // entries of a new block; one of twice as many is split

  void append(Block block) {
    limits_.push_back(block.back());
    blocks_.push_back(std::move(block));
  }
  // The first block within whose limit an entry is; the last block has none.
  ptrdiff_t block_of(const Entry& entry) const {
    return std::lower_bound(limits_.begin(), limits_.end() - 1, entry) - limits_.begin();
  }
  void split(ptrdiff_t at) {
    Block second(blocks_[at].begin() + full, blocks_[at].end());
    blocks_[at].resize(full);
    limits_.insert(limits_.begin() + at, blocks_[at].back());
    blocks_.insert(blocks_.begin() + at + 1, std::move(second));
  }

  std::vector<Block> blocks_;  // none of them empty
  std::vector<Entry> limits_;  // of each block: its entries are not behind it
};

}  // namespace situate::partition
