// A report as one page that needs nothing else: to look at, where tables must be read. It is XML too, so that it can be
// checked to be whole.
#pragma once

#include <mmr/io/file.hpp>
#include <mmr/io/format.hpp>
#include <mmr/plan/report.hpp>
#include <mmr/plan/report_script.hpp>
#include <mmr/plan/report_style.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace mmr {

namespace detail {

/// Text as it may stand in markup.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  return out;
}

/// JSON as it may stand in a script element, whatever its texts hold.
inline std::string embedded(const nlohmann::ordered_json& j) {
  std::string out;
  // Bytes that are no UTF-8 (a file name may have them) are replaced.
  for (const char c : j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<') out += "\\u003c";
    else if (c == '>') out += "\\u003e";
    else if (c == '&') out += "\\u0026";
    else out += c;
  }
  return out;
}

inline std::string figures_table(const report_subject& about) {
  std::string out =
      "<table class=\"figures\"><tr><th>plan</th><th>fits</th><th>peak</th><th>arena</th><th>parameters</th><th>gradients</th>"
      "<th>optimizer</th><th>activations</th><th>redundant</th><th>step</th><th>sent</th><th>proved</th></tr>\n";
  bool first = true;
  for (const auto& p : about.plans) {
    const auto& r = fullest_rank(p);
    const auto fits = about.limit.kept_by(p);
    out += first ? "<tr class=\"asked\">" : "<tr>";
    first = false;
    out += "<td>" + escaped(p.name) + "</td><td class=\"" + (!fits ? "" : *fits ? "yes" : "no") + "\">" + yes_no(fits) + "</td>";
    for (const auto b : {r.peak_live, r.arena, r.parameters, r.gradients, r.optimizer, r.activations, r.redundant})
      out += "<td>" + format_bytes(static_cast<double>(b)) + "</td>";
    out += "<td>" + format_seconds(p.step_seconds) + "</td><td>" + format_bytes(static_cast<double>(p.sent_bytes)) + "</td><td>" +
           proof_word(p) + "</td></tr>\n";
  }
  return out + "</table>";
}

}  // namespace detail

/// The page.
inline std::string report_page(setting& s, const report_subject& about) {
  using detail::escaped;
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
                    escaped(about.title) + "</title>\n<style>" + std::string(detail::report_style) + "</style>\n</head>\n<body>\n<main>\n<h1>" +
                    escaped(about.title) + "</h1>\n<p class=\"facts\">";
  for (const auto& fact : about.facts) out += "<span>" + escaped(fact) + "</span>";
  out += "</p>\n<noscript><p class=\"note\">The drawings need JavaScript; the table does not.</p></noscript>\n";
  if (about.run)
    out += "<section><h2>The run, under plan " + escaped(about.run->plan) + "</h2><div class=\"two\" id=\"run\"></div></section>\n";
  out +=
      "<div class=\"two\"><section><h2>Memory against time</h2>\n"
      "<p class=\"note\">Down and left is better. The line is the front: no plan found is better in both.</p>\n"
      "<div id=\"front\"></div></section>\n"
      "<section><h2>What fills a device at its peak</h2>\n"
      "<p class=\"note\">Hatched: held more than once. Dashed: what there is (red), what would do without redundancy (green).</p>\n"
      "<div id=\"bars\"></div></section></div>\n<section><h2>Figures</h2>\n"
      "<p class=\"note\">Bytes of the fullest device; a class counts where most of it is live. Time is modelled.</p>\n<div class=\"scroll\">" +
      detail::figures_table(about) +
      "</div></section>\n<div class=\"tabs\" id=\"tabs\"><span>Plan</span></div>\n"
      "<section><h2>Live bytes over the step</h2>\n<p class=\"note\">One device, operator by operator.</p>\n"
      "<div class=\"live\" id=\"live\"></div></section>\n"
      "<section><h2>Where each tensor lies</h2>\n"
      "<p class=\"note\">One block for each mesh axis: the tensor axis that it splits, <i>whole</i> where every device along it "
      "has all, <i>partial</i> where sums are still apart. Arrows: how the tensor is moved for an operator that needs it "
      "elsewhere, with the bytes that a device sends. Layers that are alike are shown once.</p>\n"
      "<div id=\"map\"></div></section>\n</main>\n<div id=\"tip\"></div>\n<script type=\"application/json\" id=\"data\">" +
      detail::embedded(report_json(s, about)) + "</script>\n<script>//<![CDATA[" + std::string(detail::report_script) +
      "//]]></script>\n</body>\n</html>\n";
  return out;
}

/// Replaces the file by the page, or leaves it as it was and throws.
inline void save_report(setting& s, const report_subject& about, const std::filesystem::path& path) {
  write_text_file(path, report_page(s, about));
}

}  // namespace mmr
