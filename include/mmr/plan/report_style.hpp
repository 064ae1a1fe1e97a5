// The style sheet of a report: readable in light and dark, without anything from outside the page.
#pragma once

#include <string_view>

namespace mmr::detail {

inline constexpr std::string_view report_style = R"css(
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --ink: #1d2126; --soft: #656d76; --line: #d9dce0; --grid: #e9ebee;
  --good: #1a7f4b; --bad: #c03a2b; --accent: #2463c5; --limit: #c03a2b;
  --c0: #3a6fc4; --c1: #dd8a2b; --c2: #3c9a6a; --c3: #8b62c9; --c4: #8a939d; --c5: #cf5078;
  --whole: #eceef1; --whole-ink: #4b535c; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --card: #1c2024; --ink: #e7eaee; --soft: #9aa4af; --line: #363c43; --grid: #2a2f35;
    --good: #52c78b; --bad: #ff7d6b; --accent: #7fb0ff; --limit: #ff7d6b;
    --c0: #6a9bea; --c1: #eba651; --c2: #57bd8b; --c3: #ae8bea; --c4: #8f99a4; --c5: #e77a9d;
    --whole: #2c3238; --whole-ink: #b6bfc9; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 20px 24px 60px; }
h1 { font-size: 22px; margin: 0 0 2px; font-weight: 650; }
h2 { font-size: 16px; margin: 0 0 2px; font-weight: 650; }
.facts { color: var(--soft); margin: 0 0 14px; }
.facts span + span::before { content: "\00b7"; margin: 0 7px; }
.note { color: var(--soft); margin: 0 0 8px; font-size: 13px; max-width: 100ch; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; margin: 14px 0; }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 14px; align-items: stretch; }
.two section { margin: 0; }
@media (max-width: 900px) { .two { grid-template-columns: minmax(0, 1fr); } }
table.figures { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
table.figures th { text-align: right; color: var(--soft); font-weight: 500; font-size: 12px; padding: 4px 8px; border-bottom: 1px solid var(--line); white-space: nowrap; }
table.figures td { text-align: right; padding: 4px 8px; border-bottom: 1px solid var(--grid); white-space: nowrap; }
table.figures th:first-child, table.figures td:first-child { text-align: left; white-space: normal; }
table.figures tr.asked td { font-weight: 600; }
.yes { color: var(--good); } .no { color: var(--bad); }
.scroll { overflow-x: auto; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; fill: var(--ink); font-size: 12px; font-family: inherit; }
svg text.soft { fill: var(--soft); font-size: 11px; }
svg text.limit { fill: var(--limit); font-size: 11px; }
.grid { stroke: var(--grid); } .axis { stroke: var(--line); } .limitline { stroke: var(--limit); stroke-dasharray: 5 4; stroke-width: 1.5; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; color: var(--soft); font-size: 12px; margin: 4px 0 6px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; vertical-align: -1px; }
.tabs { display: flex; flex-wrap: wrap; gap: 6px; position: sticky; top: 0; background: var(--page); padding: 10px 0; margin: 8px 0 -8px; z-index: 2; align-items: center; }
.tabs span { color: var(--soft); margin-right: 4px; }
.tabs button { font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 16px; padding: 3px 12px; cursor: pointer; }
.tabs button[aria-pressed="true"] { background: var(--accent); border-color: var(--accent); color: var(--card); }
#tip { position: fixed; pointer-events: none; background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 6px 9px; font-size: 12px; box-shadow: 0 4px 16px rgb(0 0 0 / .18); display: none; z-index: 9; max-width: 420px; white-space: pre-line; }
.live { display: grid; grid-template-columns: minmax(0, 1fr) 300px; gap: 18px; }
@media (max-width: 900px) { .live { grid-template-columns: minmax(0, 1fr); } }
.items { font-size: 12.5px; } .items h3 { font-size: 13px; margin: 0 0 6px; }
.items div { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 8px; position: relative; padding: 2px 6px; margin: 2px 0; }
.items div b { font-weight: 500; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; z-index: 1; }
.items div em { font-style: normal; font-variant-numeric: tabular-nums; z-index: 1; }
.items div u { position: absolute; left: 0; top: 0; bottom: 0; opacity: .25; border-radius: 3px; }
table.map { border-collapse: separate; border-spacing: 0 2px; width: 100%; font-size: 12.5px; margin: 0 0 14px; }
table.map th { text-align: left; font-weight: 500; color: var(--soft); padding: 2px 8px; vertical-align: bottom; }
table.map th.block { color: var(--ink); font-weight: 650; font-size: 13.5px; }
table.map td { padding: 1px 8px; vertical-align: middle; }
table.map tr.section td { color: var(--soft); padding-top: 8px; font-size: 12px; }
table.map td.name { white-space: nowrap; max-width: 250px; overflow: hidden; text-overflow: ellipsis; }
.cell { display: flex; gap: 8px; align-items: center; white-space: nowrap; }
.place { display: inline-flex; gap: 2px; }
.pill { display: inline-block; min-width: 58px; text-align: center; border-radius: 4px; padding: 1px 6px; font-size: 11px; line-height: 16px; color: #fff; white-space: nowrap; }
.pill.whole { background: var(--whole); color: var(--whole-ink); }
.pill.sum { background: repeating-linear-gradient(45deg, var(--whole), var(--whole) 4px, var(--line) 4px, var(--line) 8px); color: var(--ink); }
.bytes { font-variant-numeric: tabular-nums; min-width: 62px; text-align: right; }
.waste { color: var(--bad); font-size: 11px; }
.bytes.over { color: var(--bad); }
.same { color: var(--soft); font-size: 11px; }
table.map.many .move { max-width: 280px; }
.move { overflow: hidden; text-overflow: ellipsis; max-width: 340px; border: 1px solid var(--line); border-radius: 10px; padding: 0 8px; font-size: 11px; line-height: 17px; color: var(--soft); white-space: nowrap; }
.move b { color: var(--ink); font-weight: 550; }
)css";

}  // namespace mmr::detail
