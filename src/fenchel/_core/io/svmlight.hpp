// Rows of svmlight (LIBSVM) text:   label [qid:N] index:value index:value ... [# comment]
//
// The text is a chunk of whole lines. Blank lines and comments give no row. Indices are returned as written, since whether they start
// at 0 or 1 is known only at the end of the file.
#pragma once
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "linalg/storage.hpp"

namespace fenchel {

struct SvmlightRows {
    std::vector<double> labels;
    std::vector<Index> lengths;  // entries of each row
    std::vector<Index> indices;
    std::vector<double> values;
};

inline bool is_blank(char c) { return c == ' ' || ('\t' <= c && c <= '\r'); }
inline bool is_digit(char c) { return '0' <= c && c <= '9'; }

// Text for an error message, shortened, with unprintable bytes escaped.
inline std::string quoted(std::string_view token) {
    constexpr size_t longest = 40;
    constexpr char hex[] = "0123456789abcdef";
    std::string text = "'";
    for (const char c : token.substr(0, longest)) {
        const unsigned byte = static_cast<unsigned char>(c);
        if (byte >= ' ' && byte <= '~') text += c;
        else text += {'\\', 'x', hex[byte / 16], hex[byte % 16]};
    }
    return text + (token.size() > longest ? "...'" : "'");
}

// +-inf or +-0 for a number outside the range of double, by the decimal exponent of its first nonzero digit.
inline double beyond_range(std::string_view number) {
    const double sign = number.front() == '-' ? -1 : 1;
    const size_t e = std::min(number.find_first_of("eE"), number.size());
    const std::string_view digits = number.substr(0, e);
    const Index point = static_cast<Index>(std::min(digits.find('.'), digits.size()));
    const Index first = static_cast<Index>(digits.find_first_of("123456789"));
    const bool falling = number.substr(e).find('-') != std::string_view::npos;
    Index exponent = 0;
    const size_t from = std::min(number.find_first_not_of("eE+-", e), number.size());
    const auto parsed = std::from_chars(number.data() + from, number.data() + number.size(), exponent);
    if (parsed.ec == std::errc::result_out_of_range) exponent = std::numeric_limits<Index>::max() / 2;
    return point - first + (falling ? -exponent : exponent) > 0 ? sign * std::numeric_limits<double>::infinity() : sign * 0.0;
}

// The number at the start of [p, end), correctly rounded; returns its end, or nullptr if there is none.
inline const char *parse_real(const char *p, const char *end, double &x) {
    if (end - p > 1 && *p == '+' && p[1] != '-') ++p;  // std::from_chars does not accept it
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    const auto [stop, error] = std::from_chars(p, end, x);
#else  // no std::from_chars for floating-point numbers
    const std::string token(p, std::find_if(p, end, [](char c) { return std::isspace(static_cast<unsigned char>(c)) || c == ':'; }));
    char *last = nullptr;
    errno = 0;
    x = std::strtod(token.c_str(), &last);
    const char *stop = p + (last - token.c_str());
    const auto error = stop == p ? std::errc::invalid_argument : (errno == ERANGE ? std::errc::result_out_of_range : std::errc{});
#endif
    if (error == std::errc::invalid_argument) return nullptr;
    if (error == std::errc::result_out_of_range) x = beyond_range({p, static_cast<size_t>(stop - p)});
    return stop;
}

// The integer >= 0 at the start of [p, end); returns its end, or nullptr if there is none or it exceeds Index.
inline const char *parse_index(const char *p, const char *end, Index &index) {
    const char *start = p;
    std::uint64_t k = 0;
    for (; p != end && is_digit(*p); ++p) k = 10 * k + static_cast<std::uint64_t>(*p - '0');
    index = static_cast<Index>(k);
    return p == start || p - start > std::numeric_limits<Index>::digits10 ? nullptr : p;
}

class SvmlightParser {
  public:
    explicit SvmlightParser(Index first_line) : line_(first_line) {}

    SvmlightRows parse(std::string_view text) {
        rows_.indices.reserve(std::count(text.begin(), text.end(), ':'));
        rows_.values.reserve(rows_.indices.capacity());
        for (; !text.empty(); ++line_) {
            const size_t length = std::min(text.find('\n'), text.size());
            parse_line(text.substr(0, std::min(text.substr(0, length).find('#'), length)));
            text.remove_prefix(std::min(length + 1, text.size()));
        }
        return std::move(rows_);
    }

  private:
    void parse_line(std::string_view line) {
        const char *end = line.data() + line.size();
        const char *p = skip_blanks(line.data(), end);
        if (p == end) return;
        const size_t before = rows_.values.size();
        p = parse_query(parse_label(p, end), end);
        while (p != end) p = parse_entry(p, end);
        rows_.lengths.push_back(static_cast<Index>(rows_.values.size() - before));
    }

    const char *parse_label(const char *p, const char *end) {
        double label;
        const char *stop = parse_real(p, end, label);
        if (!ends_token(stop, end)) {
            const std::string_view token = token_at(p, end);
            if (token.find(',') != token.npos) fail("has several labels, " + quoted(token) + ", but a model has one target");
            if (token.find(':') != token.npos) fail("has no label before " + quoted(token));
            fail("starts with " + quoted(token) + ", which is not a number");
        }
        rows_.labels.push_back(label);
        return skip_blanks(stop, end);
    }

    const char *parse_query(const char *p, const char *end) {
        constexpr std::string_view prefix = "qid:";
        if (!token_at(p, end).starts_with(prefix)) return p;
        Index query;
        const char *stop = parse_index(p + prefix.size(), end, query);
        if (!ends_token(stop, end)) fail("has " + quoted(token_at(p, end)) + " where qid:N was expected");
        return skip_blanks(stop, end);
    }

    const char *parse_entry(const char *p, const char *end) {
        Index index;
        double value;
        const char *stop = parse_index(p, end, index);
        if (stop && stop != end && *stop == ':') stop = parse_value(stop + 1, end, value);
        else stop = nullptr;
        if (!ends_token(stop, end)) fail("has " + quoted(token_at(p, end)) + " where index:value was expected");
        rows_.indices.push_back(index);
        rows_.values.push_back(value);
        return skip_blanks(stop, end);
    }

    // Fast for values of one digit, by far the most common.
    static const char *parse_value(const char *p, const char *end, double &value) {
        if (p == end || !is_digit(*p) || !ends_token(p + 1, end)) return parse_real(p, end, value);
        value = *p - '0';
        return p + 1;
    }

    static const char *skip_blanks(const char *p, const char *end) {
        while (p != end && is_blank(*p)) ++p;
        return p;
    }
    static bool ends_token(const char *p, const char *end) { return p && (p == end || is_blank(*p)); }
    static std::string_view token_at(const char *p, const char *end) { return {p, static_cast<size_t>(std::find_if(p, end, is_blank) - p)}; }
    [[noreturn]] void fail(const std::string &what) const { throw std::invalid_argument("line " + std::to_string(line_) + " " + what); }

    Index line_;
    SvmlightRows rows_;
};

}  // namespace fenchel
