// A text table whose columns line up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mmr/io/format.hpp>
#include <mmr/tensor/error.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mmr {

enum class align { left, right };

/// A column: its title, and its unit in a second header line where any column has one.
struct table_column {
  std::string title;
  align side = align::right;
  std::string unit = {};
};

/// Rows of cells under a header; printed with two blanks between columns and none at the end of a line.
///
///     plan    peak      step
///               MB        ms
///     ----  ------  --------
///     ddp    120.5      33.1
class text_table {
 public:
  explicit text_table(std::vector<table_column> columns) : columns_(std::move(columns)) {}

  /// As many cells as the table has columns.
  void add_row(std::vector<std::string> cells) {
    if (cells.size() != columns_.size())
      fail("a row of ", cells.size(), " cells does not fit a table of ", columns_.size(), " columns");
    rows_.push_back(std::move(cells));
  }

  /// A line of dashes between the rows before and after it.
  void add_rule() { rows_.emplace_back(); }

  friend std::ostream& operator<<(std::ostream& out, const text_table& table) {
    std::vector<std::size_t> widths;
    std::vector<std::string> titles, units;
    for (const table_column& column : table.columns_) {
      titles.push_back(column.title);
      units.push_back(column.unit);
      widths.push_back(std::max(width(column.title), width(column.unit)));
    }
    for (const auto& row : table.rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
    }
    std::vector<std::string> dashes;
    for (const std::size_t w : widths) dashes.emplace_back(w, '-');

    table.print(out, widths, titles);
    if (std::any_of(units.begin(), units.end(), [](const auto& unit) { return !unit.empty(); }))
      table.print(out, widths, units);
    table.print(out, widths, dashes);
    for (const auto& row : table.rows_) table.print(out, widths, row.empty() ? dashes : row);
    return out;
  }

 private:
  /// Columns on the screen: UTF-8 continuation bytes take none.
  static std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  }

  void print(std::ostream& out, const std::vector<std::size_t>& widths, const std::vector<std::string>& cells) const {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string blanks(widths[c] - width(cells[c]), ' ');
      line += (c ? "  " : "");
      line += columns_[c].side == align::right ? blanks + cells[c] : cells[c] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }

  std::vector<table_column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mmr
