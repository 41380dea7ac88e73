// The cells of a table in text: the twin of read_cells in backend/numpy_kernels/cells.py.
//
// The states are those of Python's csv module: a quote opens a quoted part at the start of a cell
// only, spaces before a cell are passed over, and what follows a closing quote is kept as it is.
// Whatever is wrong (a row of another length, a cell beyond the limit) is left to the twin, which
// says it.
#include <cfloat>
#include <charconv>
#include <deque>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"

namespace chainrule {
namespace {

constexpr std::size_t LIMIT = 131072;  // bytes of a cell; that of the csv module, in characters

struct Syntax {
    bool ends[256] = {};  // what ends a cell without quotes
    char delimiter;
    bool comma;  // whether a comma is a decimal point, too

    Syntax(char separator, bool decimal_comma) : delimiter(separator), comma(decimal_comma) {
        for (const char c : {separator, '\n', '\r'}) ends[static_cast<unsigned char>(c)] = true;
    }
    bool is_end(const char* p, const char* end) const {
        return p == end || ends[static_cast<unsigned char>(*p)];
    }
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view stripped(std::string_view s) {
    while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
    while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
    return s;
}

// --- numbers -------------------------------------------------------------------------------------

// The nearest double to a number in decimal notation, as Python's float() has it.
double rounded(const char* begin, const char* end, bool comma) {
    std::string copy;
    if (comma) {
        copy.assign(begin, end);
        for (char& c : copy)
            if (c == ',') c = '.';
        begin = copy.data();
        end = begin + copy.size();
    }
#if defined(__cpp_lib_to_chars)
    double value;
    const auto found = std::from_chars(*begin == '+' ? begin + 1 : begin, end, value);
    if (found.ec == std::errc() && found.ptr == end) return value;
#endif
    const std::string text(begin, end);  // too large, too small, or no from_chars
    char* stop = nullptr;
    return PyOS_string_to_double(text.c_str(), &stop, nullptr);
}

// Reads [+-]digits[.digits][e[+-]digits] from `p`; where it ends, null if there is none. `end` is
// readable and no digit.
const char* read_number(const char* p, const char* end, bool comma, double* out) {
    // Powers of ten that are exact: with at most 53 bits of digits, one rounding makes the result.
    static constexpr double TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char* const begin = p;
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    std::uint64_t digits = 0;
    std::int64_t power = 0, exponent = 0;
    int significant = 0;
    bool any = false;
    for (; p != end && is_digit(*p); ++p, any = true) {
        digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
        significant += digits != 0;
    }
    if (p != end && (*p == '.' || (comma && *p == ','))) {
        for (++p; p != end && is_digit(*p); ++p, any = true, --power) {
            digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
            significant += digits != 0;
        }
    }
    if (!any) return nullptr;
    if (p != end && (*p == 'e' || *p == 'E')) {
        ++p;
        const bool down = p != end && *p == '-';
        if (p != end && (*p == '-' || *p == '+')) ++p;
        if (p == end || !is_digit(*p)) return nullptr;
        for (; p != end && is_digit(*p); ++p)
            if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
        power += down ? -exponent : exponent;
    }
    if (FLT_EVAL_METHOD != 0 || significant > 19 || digits > (std::uint64_t(1) << 53) ||
        power < -22 || power > 22) {
        *out = rounded(begin, p, comma);
        return p;
    }
    const double whole = static_cast<double>(digits);
    const double value = power < 0 ? whole / TEN[-power] : whole * TEN[power];
    *out = negative ? -value : value;
    return p;
}

// --- words ---------------------------------------------------------------------------------------

// Different words, numbered in the order in which they come.
class Words {
  public:
    std::vector<std::string_view> list;

    std::int32_t code(std::string_view word) {
        if (2 * list.size() >= slots.size()) grow();
        const std::size_t hash = std::hash<std::string_view>()(word);
        for (std::size_t i = hash & (slots.size() - 1);; i = (i + 1) & (slots.size() - 1)) {
            const std::int32_t found = slots[i];
            if (found < 0) {
                slots[i] = static_cast<std::int32_t>(list.size());
                list.push_back(word);
                hashes.push_back(hash);
                return slots[i];
            }
            const auto at = static_cast<std::size_t>(found);
            if (hashes[at] == hash && list[at] == word) return found;
        }
    }

  private:
    std::vector<std::int32_t> slots;  // a power of two of them, -1 where free
    std::vector<std::size_t> hashes;

    void grow() {
        slots.assign(slots.empty() ? 64 : 2 * slots.size(), -1);
        for (std::size_t word = 0; word < list.size(); ++word) {
            std::size_t i = hashes[word] & (slots.size() - 1);
            while (slots[i] >= 0) i = (i + 1) & (slots.size() - 1);
            slots[i] = static_cast<std::int32_t>(word);
        }
    }
};

// What a column holds: numbers and the cells that are none, or words.
struct Cells {
    char mode;
    std::vector<double> numbers;
    std::vector<std::int64_t> odd_rows;
    std::vector<std::string_view> odd;
    std::vector<std::int32_t> codes;
    Words words;
};

// --- reading -------------------------------------------------------------------------------------

enum class Found { record, open, wrong };

class Reader {
  public:
    std::vector<Cells> columns;
    std::int64_t rows = 0;

    Reader(const char* text, std::size_t size, const Syntax& s, const char* modes, std::size_t n)
        : columns(n), p(text), end(text + size), syntax(s) {
        for (std::size_t i = 0; i < n; ++i) columns[i].mode = modes[i];
    }

    // Reads records to the end of the text, or to one that it does not end; that starts at `rest`.
    // An open quote at the end of the last text ends there.
    Found read(bool last, const char** rest) {
        while (p != end) {
            *rest = p;
            const Found found = record(last);
            if (found != Found::record) return found;
        }
        *rest = end;
        return Found::record;
    }

  private:
    const char* p;
    const char* end;
    Syntax syntax;
    std::deque<std::string> built;  // cells that differ from the text: quotes taken off
    std::size_t place = 0;          // of the cell in its record
    bool is_blank = false;          // the record
    bool is_open = false;           // the quote of the cell

    Found record(bool last) {
        if (*p == '\n' || *p == '\r') {
            line_end();
            return Found::record;
        }
        is_blank = is_open = false;
        for (place = 0;; ++place) {
            while (p != end && *p == ' ') ++p;
            if (!(p != end && *p == '"' ? quoted() : plain())) return Found::wrong;
            if (is_open && !last) return Found::open;
            if (p == end || *p != syntax.delimiter) break;
            ++p;
        }
        if (p != end) line_end();
        if (is_blank) return Found::record;
        ++rows;
        return place + 1 == columns.size() ? Found::record : Found::wrong;
    }

    void line_end() {
        const bool carriage = *p == '\r';
        ++p;
        if (carriage && p != end && *p == '\n') ++p;
    }

    // A cell without quotes. Numbers, which most are, are read as they are looked for.
    bool plain() {
        const char* const begin = p;
        if (place < columns.size() && columns[place].mode == 'n') {
            double value;
            const char* after = read_number(p, end, syntax.comma, &value);
            if (after != nullptr && syntax.is_end(after, end)) {
                p = after;
                columns[place].numbers.push_back(value);
                return static_cast<std::size_t>(p - begin) <= LIMIT;
            }
        }
        while (!syntax.is_end(p, end)) ++p;
        return keep(std::string_view(begin, static_cast<std::size_t>(p - begin)));
    }

    bool quoted() {
        const char* const begin = ++p;
        while (p != end && *p != '"') ++p;
        const char* const stop = p;
        if (p != end && syntax.is_end(p + 1, end)) {
            ++p;
            return keep(std::string_view(begin, static_cast<std::size_t>(stop - begin)));
        }
        std::string cell(begin, stop);
        while (p != end) {  // at a quote: doubled, or the end of the quoted part
            ++p;
            if (p == end || *p != '"') break;
            const char* const part = p++;
            while (p != end && *p != '"') ++p;
            cell.append(part, p);
            is_open = p == end;
        }
        if (stop == end) is_open = true;
        if (!is_open) {
            const char* const tail = p;
            while (!syntax.is_end(p, end)) ++p;
            cell.append(tail, p);
        }
        built.push_back(std::move(cell));
        return keep(built.back());
    }

    // False if the cell is too large, or one too many.
    bool keep(std::string_view cell) {
        if (cell.size() > LIMIT || place >= columns.size()) return false;
        is_blank = place == 0 && (p == end || *p != syntax.delimiter) && is_empty(cell);
        if (is_blank) return true;
        Cells& c = columns[place];
        if (c.mode == 't') {
            c.codes.push_back(c.words.code(cell));
        } else if (c.mode == 'n') {
            const std::string_view s = stripped(cell);
            double value = std::numeric_limits<double>::quiet_NaN();
            const char* const stop = s.data() + s.size();
            if (!s.empty() && read_number(s.data(), stop, syntax.comma, &value) != stop) {
                value = std::numeric_limits<double>::quiet_NaN();
                c.odd_rows.push_back(rows);
                c.odd.push_back(cell);
            }
            c.numbers.push_back(value);
        }
        return true;
    }

    // Whether nothing is left of it by str.strip().
    static bool is_empty(std::string_view cell) {
        bool ascii = true;
        for (const char c : cell) {
            if (static_cast<unsigned char>(c) >= 0x80)
                ascii = false;
            else if (!is_space(c) && !(c >= '\x1c' && c <= '\x1f'))
                return false;
        }
        if (ascii) return true;
        PyObject* text =
            PyUnicode_DecodeUTF8(cell.data(), static_cast<Py_ssize_t>(cell.size()), nullptr);
        if (text == nullptr) throw std::bad_alloc();
        bool blank = true;
        for (Py_ssize_t i = 0; blank && i < PyUnicode_GET_LENGTH(text); ++i)
            blank = Py_UNICODE_ISSPACE(PyUnicode_READ_CHAR(text, i));
        Py_DECREF(text);
        return blank;
    }
};

// --- what is returned ----------------------------------------------------------------------------

PyObject* text_of(std::string_view s) {
    return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), nullptr);
}

PyObject* list_of(const std::vector<std::string_view>& words) {
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(words.size()));
    for (std::size_t i = 0; list != nullptr && i < words.size(); ++i) {
        PyObject* word = text_of(words[i]);
        if (word == nullptr) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), word);
    }
    return list;
}

template <class T>
PyObject* array_of(const std::vector<T>& values, int type) {
    npy_intp size = static_cast<npy_intp>(values.size());
    PyObject* array = PyArray_SimpleNew(1, &size, type);
    if (array != nullptr && size > 0)
        std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)), values.data(),
                    values.size() * sizeof(T));
    return array;
}

template <std::size_t N>
PyObject* whole_tuple(PyObject* const (&items)[N]) {
    bool whole = true;
    for (PyObject* item : items) whole = whole && item != nullptr;
    PyObject* tuple = tuple_of(items);
    if (!whole) Py_CLEAR(tuple);
    return tuple;
}

PyObject* column_of(const Cells& c) {
    if (c.mode == 'n')
        return whole_tuple(
            {array_of(c.numbers, NPY_DOUBLE), array_of(c.odd_rows, NPY_INT64), list_of(c.odd)});
    if (c.mode == 't') return whole_tuple({array_of(c.codes, NPY_INT32), list_of(c.words.list)});
    Py_RETURN_NONE;
}

PyObject* columns_of(const std::vector<Cells>& columns) {
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(columns.size()));
    for (std::size_t i = 0; list != nullptr && i < columns.size(); ++i) {
        PyObject* column = column_of(columns[i]);
        if (column == nullptr) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), column);
    }
    return list;
}

// --- bindings ------------------------------------------------------------------------------------

template <class Make>
PyObject* read_all(const Call& call, const char* text, const char* end, bool last, Make make) {
    const char* rest = text;
    Reader reader = make(end);
    Found found = reader.read(last, &rest);
    if (found == Found::open) {  // without the start of that record
        reader = make(rest);
        found = reader.read(true, &rest);
    }
    if (found == Found::wrong) return call.by_reference();
    const std::string_view left(rest, static_cast<std::size_t>(end - rest));
    return whole_tuple({columns_of(reader.columns), PyLong_FromLongLong(reader.rows), text_of(left),
                        Py_NewRef(Py_None)});
}

Names read_cells_names{"text", "delimiter", "modes", "comma", "last"};

PyObject* read_cells(const Call& call) {
    PyObject* a[5];
    if (!read_arguments(call, read_cells_names, a)) return call.by_reference();
    for (int i = 0; i < 5; ++i)
        if (a[i] == nullptr || !(i < 3 ? PyUnicode_CheckExact(a[i]) : PyBool_Check(a[i])))
            return call.by_reference();
    Py_ssize_t size, one, width;
    const char* text = PyUnicode_AsUTF8AndSize(a[0], &size);
    const char* delimiter = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(a[1], &one);
    const char* modes = delimiter == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(a[2], &width);
    if (modes == nullptr) {  // a surrogate, which UTF-8 does not have
        PyErr_Clear();
        return call.by_reference();
    }
    const bool known = one == 1 && std::strchr(",;\t|", *delimiter) != nullptr && width > 0 &&
                       std::strspn(modes, "nt-") == static_cast<std::size_t>(width);
    // A number ends at its separator only if that is no part of one.
    if (!known || (a[3] == Py_True && *delimiter == ',')) return call.by_reference();
    const Syntax syntax(*delimiter, a[3] == Py_True);
    try {
        return read_all(call, text, text + size, a[4] == Py_True, [&](const char* end) {
            return Reader(text, static_cast<std::size_t>(end - text), syntax, modes,
                          static_cast<std::size_t>(width));
        });
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

}  // namespace

PyMethodDef cells_methods[] = {
    CHAINRULE_METHOD(read_cells, "The cells of a table in text, by columns."),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace chainrule
