// The Python type Tape: steps that are added one by one while they are computed, and run again.
#include "tape.hpp"

#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "copies.hpp"
#include "kept_update.hpp"

namespace chainrule {

thread_local Supply* supply = nullptr;
thread_local bool gil_is_released = false;
int tapes_in_the_making = 0;
PyTypeObject* tape_type = nullptr;

namespace {

bool has_form(PyArrayObject* a, int ndim, const npy_intp* shape, int type) {
    return PyArray_TYPE(a) == type && PyArray_NDIM(a) == ndim &&
           PyArray_CompareLists(PyArray_DIMS(a), shape, ndim);
}

// The next array that was noted; null if it is of another form.
PyArrayObject* supplied(int ndim, const npy_intp* shape, int type) {
    Supply& s = *supply;
    if (s.next < s.arrays.size() && has_form(s.arrays[s.next], ndim, shape, type)) {
        PyArrayObject* a = s.arrays[s.next++];
        Py_INCREF(reinterpret_cast<PyObject*>(a));
        return a;
    }
    s.exhausted = true;
    return nullptr;
}

}  // namespace

PyArrayObject* new_array(int ndim, const npy_intp* shape, int type) {
    if (supply != nullptr && !supply->collects) {
        PyArrayObject* a = supplied(ndim, shape, type);
        if (a != nullptr) return a;
    }
    PyArrayObject* made = reinterpret_cast<PyArrayObject*>(PyArray_SimpleNew(ndim, shape, type));
    if (made != nullptr && supply != nullptr && supply->collects) {
        Py_INCREF(reinterpret_cast<PyObject*>(made));
        supply->arrays.push_back(made);
    }
    return made;
}

bool tape_keeps() {
    if (supply == nullptr) return false;
    if (supply->collects) ++supply->ran;
    return supply->keeps;
}

bool supply_keeps() { return supply != nullptr && supply->keeps; }

void keep(KeptFunction f) { supply->functions.push_back(std::move(f)); }

void note_elements(const ElementCall& call) { supply->elements.push_back(call); }

void keep_draw(KeptDraw f) { supply->draw = std::move(f); }

void cannot_be_kept() {
    if (supply != nullptr) supply->lasting = false;
}

bool next_key(PyObject* generator, std::uint64_t* key) {
    PyObject* bits = PyObject_GetAttrString(generator, "bit_generator");
    if (bits == nullptr) return false;
    PyObject* number = PyObject_CallMethod(bits, "random_raw", nullptr);
    Py_DECREF(bits);
    if (number == nullptr) return false;
    *key = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

namespace {

// --- steps ---------------------------------------------------------------------------------------

// A kept step is a function (a kept check one that says whether all is well), a drawn one a
// function of random bits; a native one a call of a binding, a python one a call of anything else.
enum class Kind { kept, kept_check, drawn, native, python, check, copy, update, nothing };

// A constant of an update that follows from the number of the step: 1 - base^t.
struct Moving {
    int constant;
    double base;
    bool settled = false;  // it is 1, and stays it: powers that far down are slow to compute
};

// One call. It holds a reference to all that it names.
struct Step {
    Kind kind = Kind::nothing;
    KeptFunction kept;
    KeptDraw draw;
    PyObject* function = nullptr;
    std::vector<PyObject*> args;  // those by position, followed by those by name
    Py_ssize_t count = 0;         // of those by position
    PyObject* names = nullptr;
    std::vector<PyArrayObject*> supplies;   // arrays that the kernel asks for
    std::vector<PyArrayObject*> results;    // where the results of a NumPy kernel are copied to
    PyObject* answer = nullptr;             // of a check
    std::unique_ptr<ElementCall> elements;  // what a kept function computes, if it is elementwise
    std::unique_ptr<KeptUpdate> update;
    std::vector<Moving> moving;
    double time = 0;  // the number of the update's last step

    Step() = default;
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() {
        Py_XDECREF(function);
        Py_XDECREF(names);
        Py_XDECREF(answer);
        for (PyObject* o : args) Py_XDECREF(o);
        for (PyArrayObject* a : supplies) Py_XDECREF(reinterpret_cast<PyObject*>(a));
        for (PyArrayObject* a : results) Py_XDECREF(reinterpret_cast<PyObject*>(a));
    }

    PyObject* call() const {
        return PyObject_Vectorcall(function, args.data(), static_cast<std::size_t>(count), names);
    }
};

struct Tape {
    PyObject_HEAD std::vector<std::unique_ptr<Step>>* steps;
    Py_ssize_t done;  // repetitions of the last epoch
    Py_ssize_t at;    // the step that runs, or where the last run has ended
    bool is_long;     // a run takes longer than other Python threads should wait
};

Tape* as_tape(PyObject* o) { return reinterpret_cast<Tape*>(o); }

template <class T>
T* held(T* o) {
    Py_INCREF(reinterpret_cast<PyObject*>(o));
    return o;
}

// Takes over function, positional and named arguments.
bool set_call(Step* step, PyObject* function, PyObject* args, PyObject* kwargs) {
    if (!PyTuple_Check(args) || !PyDict_Check(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "Tape: arguments are a tuple and a dictionary");
        return false;
    }
    step->function = held(function);
    step->count = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < step->count; ++i)
        step->args.push_back(held(PyTuple_GET_ITEM(args, i)));
    const Py_ssize_t named = PyDict_GET_SIZE(kwargs);
    if (named == 0) return true;
    step->names = PyTuple_New(named);
    if (step->names == nullptr) return false;
    PyObject *key, *value;
    Py_ssize_t position = 0, i = 0;
    while (PyDict_Next(kwargs, &position, &key, &value)) {
        PyTuple_SET_ITEM(step->names, i++, held(key));
        step->args.push_back(held(value));
    }
    return true;
}

// The arrays of a result: one, or those in a tuple or list; numbers and None stay what they are.
void arrays_in(PyObject* tree, std::vector<PyArrayObject*>* out) {
    if (as_array(tree) != nullptr) {
        out->push_back(as_array(tree));
    } else if (PyTuple_Check(tree) || PyList_Check(tree)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(tree); ++i)
            arrays_in(PySequence_Fast_GET_ITEM(tree, i), out);
    }
}

// Copies the arrays (or NumPy's numbers) of a result to where they belong.
bool copy_results(PyObject* tree, const std::vector<PyArrayObject*>& to) {
    std::size_t next = 0;
    std::vector<PyArrayObject*> found;
    if (to.size() == 1 && as_array(tree) == nullptr && !PyTuple_Check(tree) &&
        !PyList_Check(tree)) {
        return PyArray_CopyObject(to[0], tree) == 0;  // a number of NumPy's
    }
    arrays_in(tree, &found);
    if (found.size() != to.size()) {
        PyErr_Format(PyExc_RuntimeError, "Tape: %zd results where %zd were recorded",
                     static_cast<Py_ssize_t>(found.size()), static_cast<Py_ssize_t>(to.size()));
        return false;
    }
    for (PyArrayObject* a : found)
        if (PyArray_CopyInto(to[next++], a) < 0) return false;
    return true;
}

// Sets where results come from for the length of a block.
struct Supplied {
    Supply* before = supply;
    explicit Supplied(Supply* s) { supply = s; }
    ~Supplied() { supply = before; }
};

Py_ssize_t length_of(PyObject* self) {
    return static_cast<Py_ssize_t>(as_tape(self)->steps->size());
}

// --- building ------------------------------------------------------------------------------------

// Whether two arrays are the same elements: a kernel may hand out an argument.
bool is_same(PyArrayObject* a, PyArrayObject* b) {
    return PyArray_DATA(a) == PyArray_DATA(b) &&
           has_form(a, PyArray_NDIM(b), PyArray_DIMS(b), PyArray_TYPE(b)) &&
           PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), PyArray_NDIM(a));
}

// Whether every place is filled by one of the arrays that the kernel asked for: then the place
// takes that array's part from now on, and nothing has to be copied.
bool adopt(Supply* collected, const std::vector<PyArrayObject*>& found, PyObject* places,
           Step* step) {
    for (std::size_t i = 0; i < found.size(); ++i) {
        PyArrayObject* place = as_array(PyTuple_GET_ITEM(places, static_cast<Py_ssize_t>(i)));
        bool asked = false;
        if (is_same(place, found[i])) continue;
        for (PyArrayObject*& a : collected->arrays) {
            if (a != found[i]) continue;
            asked = has_form(place, PyArray_NDIM(a), PyArray_DIMS(a), PyArray_TYPE(a)) &&
                    PyArray_IS_C_CONTIGUOUS(place);
            if (asked) {
                Py_DECREF(reinterpret_cast<PyObject*>(a));
                a = held(place);
            }
            break;
        }
        if (!asked) return false;
    }
    step->supplies.swap(collected->arrays);
    return true;
}

// Bindings look whether they are to keep their functions only while there is one of these.
struct Making {
    Making() { ++tapes_in_the_making; }
    ~Making() { --tapes_in_the_making; }
};

// Calls a binding once more to keep what it would compute, after a call that noted its arrays and
// counted its functions. Whether that is all there is to the call.
bool keep_functions(Step* step, const Supply& counted) {
    if (counted.ran == 0 || !counted.lasting) return false;
    Supply keeping{false, step->supplies};
    keeping.keeps = true;
    PyObject* result;
    {
        const Supplied here(&keeping);
        result = step->call();
    }
    if (result == nullptr) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(result);
    const std::size_t kept = keeping.functions.size() + (keeping.draw ? 1 : 0);
    if (keeping.exhausted || keeping.fell_back || !keeping.lasting || kept != counted.ran ||
        (keeping.draw && kept != 1))
        return false;
    if (keeping.draw) {
        step->draw = std::move(keeping.draw);
    } else if (kept == 1) {
        step->kept = std::move(keeping.functions[0]);
        if (keeping.elements.size() == 1)
            step->elements = std::make_unique<ElementCall>(keeping.elements[0]);
    } else {
        step->kept = [functions = std::move(keeping.functions)] {
            for (const KeptFunction& f : functions)
                if (!f()) return false;
            return true;
        };
    }
    return true;
}

// How a step will run: by a call of Python, by one of a binding, or without any.
enum : long { BY_PYTHON = 0, BY_BINDING = 1, ALONE = 2 };

// add(function, args, kwargs, places): computes a call, puts its results into the places and keeps
// it. Returns how it will run.
PyObject* add(PyObject* self, PyObject* given) {
    PyObject *function, *args, *kwargs, *places;
    if (!PyArg_ParseTuple(given, "OOOO!", &function, &args, &kwargs, &PyTuple_Type, &places))
        return nullptr;
    auto step = std::make_unique<Step>();
    if (!set_call(step.get(), function, args, kwargs)) return nullptr;
    const Making making;
    Supply collected{true, {}};
    PyObject* result;
    {
        const Supplied here(&collected);
        result = step->call();
    }
    bool native = false;
    if (result != nullptr) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i)
            step->results.push_back(held(as_array(PyTuple_GET_ITEM(places, i))));
        std::vector<PyArrayObject*> found;
        arrays_in(result, &found);
        native = PyCFunction_Check(function) && !collected.fell_back &&
                 found.size() == step->results.size();
        if (!step->results.empty() && !copy_results(result, step->results)) {
            Py_DECREF(result);
            result = nullptr;
        } else {
            native = native && adopt(&collected, found, places, step.get());
        }
    }
    for (PyArrayObject* a : collected.arrays) Py_DECREF(reinterpret_cast<PyObject*>(a));
    if (result == nullptr) return nullptr;
    Py_DECREF(result);
    const bool kept = native && keep_functions(step.get(), collected);
    step->kind = !native      ? Kind::python
                 : !kept      ? Kind::native
                 : step->draw ? Kind::drawn
                              : Kind::kept;
    as_tape(self)->steps->push_back(std::move(step));
    return PyLong_FromLong(!native ? BY_PYTHON : kept ? ALONE : BY_BINDING);
}

// Whether a check can be kept; it is called for that.
bool keep_check(Step* step) {
    if (!PyCFunction_Check(step->function) || step->answer != Py_True) return false;
    const Making making;
    Supply counted{true, {}};
    PyObject* result;
    {
        const Supplied here(&counted);
        result = step->call();
    }
    Py_XDECREF(result);
    const bool plain = counted.arrays.empty() && !counted.fell_back;
    for (PyArrayObject* a : counted.arrays) Py_DECREF(reinterpret_cast<PyObject*>(a));
    if (result == nullptr) PyErr_Clear();
    return result != nullptr && plain && keep_functions(step, counted);
}

// add_check(function, args, kwargs, answer): a call that has to give this answer. Returns how it
// will run.
PyObject* add_check(PyObject* self, PyObject* given) {
    PyObject *function, *args, *kwargs, *answer;
    if (!PyArg_ParseTuple(given, "OOOO", &function, &args, &kwargs, &answer)) return nullptr;
    auto step = std::make_unique<Step>();
    if (!set_call(step.get(), function, args, kwargs)) return nullptr;
    step->answer = held(answer);
    const bool kept = keep_check(step.get());
    step->kind = kept ? Kind::kept_check : Kind::check;
    as_tape(self)->steps->push_back(std::move(step));
    return PyLong_FromLong(kept ? ALONE : BY_PYTHON);
}

// add_copy(target, source): the elements of one array into another, converted. Returns how it will
// run.
PyObject* add_copy(PyObject* self, PyObject* given) {
    PyObject *target, *source;
    if (!PyArg_ParseTuple(given, "O!O!", &PyArray_Type, &target, &PyArray_Type, &source))
        return nullptr;
    auto step = std::make_unique<Step>();
    step->args = {held(target), held(source)};
    if (PyArray_CopyInto(as_array(target), as_array(source)) < 0) return nullptr;
    step->kept = copy_between(as_array(target), as_array(source));
    step->elements = copied_elements(as_array(target), as_array(source));
    const bool kept = static_cast<bool>(step->kept);
    step->kind = kept ? Kind::kept : Kind::copy;
    as_tape(self)->steps->push_back(std::move(step));
    return PyLong_FromLong(kept ? ALONE : BY_BINDING);
}

// Takes over what a step of a chain holds but for the temporaries.
void hold_all_of(Step* chain, Step* part, const std::vector<Temporary>& temporaries) {
    const auto is_temporary = [&](PyObject* o) {
        if (o == nullptr || !PyArray_Check(o)) return false;
        const char* first = PyArray_BYTES(as_array(o));
        for (const Temporary& t : temporaries)
            if (first >= t.first && first < t.end) return true;
        return false;
    };
    const auto hold = [&](PyObject* o) {
        if (o != nullptr && !is_temporary(o)) chain->args.push_back(held(o));
    };
    for (PyObject* o : part->args) hold(o);
    for (PyArrayObject* a : part->supplies) hold(reinterpret_cast<PyObject*>(a));
    for (PyArrayObject* a : part->results) hold(reinterpret_cast<PyObject*>(a));
}

// join(first, temporaries): makes one step of those from `first` on, if all are elementwise calls
// of one size; the temporaries, a tuple of arrays, are read by these steps alone, and not filled
// any more. Returns whether it did.
PyObject* join(PyObject* self, PyObject* given) {
    Py_ssize_t first;
    PyObject* arrays;
    if (!PyArg_ParseTuple(given, "nO!", &first, &PyTuple_Type, &arrays)) return nullptr;
    auto& steps = *as_tape(self)->steps;
    if (first < 0 || first >= static_cast<Py_ssize_t>(steps.size())) {
        PyErr_SetString(PyExc_IndexError, "Tape.join: there are not so many steps");
        return nullptr;
    }
    std::vector<Temporary> temporaries;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arrays); ++i) {
        PyArrayObject* a = as_array(PyTuple_GET_ITEM(arrays, i));
        if (a == nullptr || !is_plain(a)) {
            PyErr_SetString(PyExc_TypeError, "Tape.join: temporaries are arrays in one piece");
            return nullptr;
        }
        temporaries.push_back({PyArray_BYTES(a), PyArray_BYTES(a) + PyArray_NBYTES(a)});
    }
    std::vector<ElementCall> calls;
    const auto begin = steps.begin() + first;
    for (auto step = begin; step != steps.end(); ++step) {
        if ((*step)->kind != Kind::kept || (*step)->elements == nullptr) Py_RETURN_FALSE;
        calls.push_back(*(*step)->elements);
    }
    auto chain = std::make_unique<Step>();
    chain->kind = Kind::kept;
    chain->kept = chained(std::move(calls), temporaries);
    if (!chain->kept) Py_RETURN_FALSE;
    for (auto step = begin; step != steps.end(); ++step)
        hold_all_of(chain.get(), step->get(), temporaries);
    steps.erase(begin, steps.end());
    steps.push_back(std::move(chain));
    Py_RETURN_TRUE;
}

// --- running -------------------------------------------------------------------------------------

bool run_native(const Step& step, Supply* mine) {
    mine->arrays.assign(step.supplies.begin(), step.supplies.end());
    mine->next = 0;
    PyObject* result;
    {
        const Supplied here(mine);
        result = step.call();
    }
    if (result == nullptr) return false;
    Py_DECREF(result);
    if (mine->exhausted || mine->fell_back) {
        PyErr_SetString(PyExc_RuntimeError, "Tape: a kernel went another way than recorded");
        return false;
    }
    return true;
}

bool run_python(const Step& step) {
    if (step.function == nullptr) {  // a chain, which needs nothing but memory for its registers
        PyErr_NoMemory();
        return false;
    }
    PyObject* result = step.call();
    if (result == nullptr) return false;
    const bool done = step.results.empty() || copy_results(result, step.results);
    Py_DECREF(result);
    return done;
}

// 1 if the answer is the one that was recorded, 0 if it is not, -1 with an error.
int run_check(const Step& step) {
    PyObject* result = step.call();
    if (result == nullptr) return -1;
    const int same = PyObject_RichCompareBool(result, step.answer, Py_EQ);
    Py_DECREF(result);
    return same;
}

bool run_copy(const Step& step) {
    return PyArray_CopyInto(as_array(step.args[0]), as_array(step.args[1])) == 0;
}

// The GIL of a thread that runs a tape, which may give it up for all steps that are kept.
class Gil {
  public:
    explicit Gil(bool gives_up) : gives_up_(gives_up) { give_up(); }
    ~Gil() { take(); }
    Gil(const Gil&) = delete;
    Gil& operator=(const Gil&) = delete;

    void take() {
        if (state_ == nullptr) return;
        gil_is_released = false;
        PyEval_RestoreThread(state_);
        state_ = nullptr;
    }
    void give_up() {
        if (!gives_up_ || state_ != nullptr) return;
        state_ = PyEval_SaveThread();
        gil_is_released = true;
    }

  private:
    const bool gives_up_;
    PyThreadState* state_ = nullptr;
};

// Holds the GIL for a block.
struct WithGil {
    Gil* gil;
    explicit WithGil(Gil* g) : gil(g) { gil->take(); }
    ~WithGil() { gil->give_up(); }
};

bool is_alone(const Step& step) {
    switch (step.kind) {
        case Kind::kept:
        case Kind::kept_check:
        case Kind::drawn:
        case Kind::update:
        case Kind::nothing: return true;
        default: return false;
    }
}

// Whether no step needs Python, but to draw.
bool are_alone(const std::vector<std::unique_ptr<Step>>& steps) {
    for (const auto& step : steps)
        if (!is_alone(*step)) return false;
    return true;
}

bool draw_and_run(const Step& step, Gil* gil) {
    std::uint64_t key;
    {
        const WithGil held(gil);
        if (!next_key(step.args[0], &key)) return false;
    }
    return step.draw(key);
}

// The numbers of the next step of an update.
bool advance(Step* step) {
    step->time += 1;
    for (Moving& m : step->moving) {
        if (m.settled) continue;
        const double value = 1 - std::pow(m.base, step->time);
        if (!step->update->set_constant(m.constant, value)) return false;
        m.settled = value == 1 && m.base >= 0 && m.base < 1;
    }
    return true;
}

constexpr Py_ssize_t DONE = -1, FAILED = -2;

// A step that needs Python: DONE, FAILED with an error, or its number as that of a check whose
// answer is another one than recorded.
Py_ssize_t run_with_python(const Step& step, Py_ssize_t number, Supply* mine) {
    bool done = true;
    switch (step.kind) {
        case Kind::native: done = run_native(step, mine); break;
        case Kind::copy: done = run_copy(step); break;
        case Kind::check:
        case Kind::kept_check: {
            const int same = run_check(step);
            if (same == 0) return number;
            done = same > 0;
            break;
        }
        default: done = run_python(step); break;
    }
    return done ? DONE : FAILED;
}

// Runs the steps of a range: DONE, FAILED with a Python error (and the GIL), or the number of a
// check whose answer is another one than recorded. What a kept function does not do (there is an
// index that is out of range) is left to the call that it was kept of, which raises the error.
Py_ssize_t run_range(Tape* tape, Py_ssize_t first, Py_ssize_t last, Supply* mine, Gil* gil) {
    for (Py_ssize_t i = first; i < last; ++i) {
        const Step& step = *(*tape->steps)[static_cast<std::size_t>(i)];
        tape->at = i;
        switch (step.kind) {
            case Kind::kept:
            case Kind::kept_check:
                if (step.kept()) continue;
                break;
            case Kind::update: step.update->run(); continue;
            case Kind::drawn:
                if (draw_and_run(step, gil)) continue;
                gil->take();
                return FAILED;
            case Kind::nothing: continue;
            default: break;
        }
        gil->take();
        const Py_ssize_t code = run_with_python(step, i, mine);
        if (code != DONE) return code;
        gil->give_up();
    }
    tape->at = last;
    return DONE;
}

// Other Python threads run meanwhile if a run takes longer than this.
constexpr std::chrono::microseconds LONG(20);

PyObject* outcome(Py_ssize_t code) { return code == FAILED ? nullptr : PyLong_FromSsize_t(code); }

// The steps of a range, without the GIL where that pays.
Py_ssize_t run_once(Tape* tape, Py_ssize_t first, Py_ssize_t last) {
    Supply mine{false, {}};
    const auto start = std::chrono::steady_clock::now();
    Py_ssize_t code;
    {
        Gil gil(tape->is_long && are_alone(*tape->steps));
        code = run_range(tape, first, last, &mine, &gil);
    }
    tape->is_long = std::chrono::steady_clock::now() - start > LONG;
    return code;
}

// run(first, last): the steps of this range; returns the number of the check that failed, or -1
PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "Tape.run: expected two numbers of steps");
        return nullptr;
    }
    const Py_ssize_t first = PyLong_AsSsize_t(args[0]), last = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred()) return nullptr;
    const auto& steps = *as_tape(self)->steps;
    if (first < 0 || last > static_cast<Py_ssize_t>(steps.size())) {
        PyErr_SetString(PyExc_IndexError, "Tape.run: there are not so many steps");
        return nullptr;
    }
    return outcome(run_once(as_tape(self), first, last));
}

// position(): repetitions of the last epoch that are done, and the step of the next one at which it
// stopped; after run() the step at which that stopped
PyObject* position(PyObject* self, PyObject*) {
    return Py_BuildValue("nn", as_tape(self)->done, as_tape(self)->at);
}

// --- updates -------------------------------------------------------------------------------------

Step* step_at(PyObject* self, Py_ssize_t number, Kind kind) {
    const auto& steps = *as_tape(self)->steps;
    if (number < 0 || number >= static_cast<Py_ssize_t>(steps.size()) ||
        steps[static_cast<std::size_t>(number)]->kind != kind) {
        PyErr_SetString(PyExc_IndexError, "Tape: there is no such step");
        return nullptr;
    }
    return steps[static_cast<std::size_t>(number)].get();
}

// add_update(args): keeps a call of write_updates, which is not computed. The number of the step,
// or None if it is such that NumPy sees to it.
PyObject* add_update(PyObject* self, PyObject* args) {
    if (!PyTuple_Check(args)) {
        PyErr_SetString(PyExc_TypeError, "Tape.add_update: expected the arguments as a tuple");
        return nullptr;
    }
    auto step = std::make_unique<Step>();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
        step->args.push_back(held(PyTuple_GET_ITEM(args, i)));
    step->update = KeptUpdate::of(step->args.data(), PyTuple_GET_SIZE(args));
    if (PyErr_Occurred()) return nullptr;
    if (step->update == nullptr) Py_RETURN_NONE;
    step->kind = Kind::update;
    as_tape(self)->steps->push_back(std::move(step));
    return PyLong_FromSsize_t(length_of(self) - 1);
}

// set_numbers(step, lr, constants): of the next run of an update; None in the place of a rate where
// the rates are arrays. Whether it can be.
PyObject* set_numbers(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !(PyFloat_Check(args[1]) || args[1] == Py_None) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "Tape.set_numbers: expected (step, lr, constants)");
        return nullptr;
    }
    const Step* step = step_at(self, PyLong_AsSsize_t(args[0]), Kind::update);
    if (step == nullptr) return nullptr;
    if (step->update->has_rates() != (args[1] == Py_None)) {
        PyErr_SetString(PyExc_TypeError, "Tape.set_numbers: these are rates of another kind");
        return nullptr;
    }
    if (args[1] != Py_None) step->update->set_rate(PyFloat_AS_DOUBLE(args[1]));
    return PyBool_FromLong(step->update->set(args[2]));
}

// The number of a constant by its name; -1 with an error if there is none.
int constant_of(PyObject* name) {
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    const int number = text == nullptr ? -1 : KeptUpdate::constant(text);
    if (number < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "Tape: no update has a constant %R", name);
    return number;
}

// set_moving(step, time, {name: base}): constants that follow from the number of the step, and the
// number of the last one
PyObject* set_moving(PyObject* self, PyObject* given) {
    Py_ssize_t number;
    double time;
    PyObject* bases;
    if (!PyArg_ParseTuple(given, "ndO!", &number, &time, &PyDict_Type, &bases)) return nullptr;
    Step* step = step_at(self, number, Kind::update);
    if (step == nullptr) return nullptr;
    step->time = time;
    step->moving.clear();
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(bases, &position, &key, &value)) {
        const int constant = constant_of(key);
        const double base = PyFloat_AsDouble(value);
        if (constant < 0 || PyErr_Occurred()) return nullptr;
        step->moving.push_back({constant, base});
    }
    Py_RETURN_NONE;
}

// set_argument(step, place, value): of a call of Python's
PyObject* set_argument(PyObject* self, PyObject* given) {
    Py_ssize_t number, place;
    PyObject* value;
    if (!PyArg_ParseTuple(given, "nnO", &number, &place, &value)) return nullptr;
    if (!tape_set_argument(self, number, place, value)) return nullptr;
    Py_RETURN_NONE;
}

// --- many steps ----------------------------------------------------------------------------------

// Rows of an array of samples that are copied into an input of the program.
struct Feed {
    char* target;
    const char* source;
    std::size_t bytes;   // of a row
    std::int64_t count;  // rows of a batch
    std::int64_t rows;   // rows of the source

    // The batch whose rows `order` names from `begin` on, or that lie there.
    void fill(const std::int64_t* order, std::int64_t begin) const {
        if (order == nullptr) {
            std::memcpy(target, source + static_cast<std::size_t>(begin) * bytes,
                        static_cast<std::size_t>(count) * bytes);
            return;
        }
        for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(target + static_cast<std::size_t>(i) * bytes,
                        source + static_cast<std::size_t>(order[begin + i]) * bytes, bytes);
    }
};

bool feeds_of(PyObject* targets, PyObject* sources, std::vector<Feed>* out) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(targets); ++i) {
        PyArrayObject* t = as_array(PyTuple_GET_ITEM(targets, i));
        PyArrayObject* s = as_array(PyTuple_GET_ITEM(sources, i));
        if (t == nullptr || s == nullptr || PyArray_NDIM(t) < 1 || !is_plain(t) || !is_plain(s) ||
            PyArray_TYPE(t) != PyArray_TYPE(s) || PyArray_NDIM(t) != PyArray_NDIM(s) ||
            !PyArray_CompareLists(PyArray_DIMS(t) + 1, PyArray_DIMS(s) + 1, PyArray_NDIM(t) - 1)) {
            PyErr_SetString(PyExc_ValueError, "Tape.epoch: the samples do not fit the inputs");
            return false;
        }
        const std::int64_t count = PyArray_DIM(t, 0);
        const std::size_t bytes =
            count == 0 ? 0 : static_cast<std::size_t>(PyArray_NBYTES(t) / count);
        out->push_back({PyArray_BYTES(t), PyArray_BYTES(s), bytes, count, PyArray_DIM(s, 0)});
    }
    return true;
}

// The numbers of an update for all repetitions: a row for each.
struct Table {
    Step* step;
    std::vector<int> columns;  // which constants; RATE is the rate
    const double* numbers;

    static constexpr int RATE = -1;

    // Sets the numbers of a repetition; false if the rule would divide by zero.
    bool set(Py_ssize_t k) const {
        const double* row = numbers + static_cast<std::size_t>(k) * columns.size();
        bool fine = true;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (columns[i] == RATE)
                step->update->set_rate(row[i]);
            else
                fine = step->update->set_constant(columns[i], row[i]) && fine;
        }
        return fine;
    }
};

// Reads (step, names of columns, array of rows).
bool table_of(PyObject* self, PyObject* given, Py_ssize_t times, Table* out) {
    Py_ssize_t number;
    PyObject *names, *rows;
    if (!PyTuple_Check(given) ||
        !PyArg_ParseTuple(given, "nO!O!", &number, &PyTuple_Type, &names, &PyArray_Type, &rows))
        return false;
    out->step = step_at(self, number, Kind::update);
    if (out->step == nullptr) return false;
    const Py_ssize_t count = PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* name = PyTuple_GET_ITEM(names, i);
        const bool rate =
            PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "lr") == 0;
        const int column = rate ? Table::RATE : constant_of(name);
        if (!rate && column < 0) return false;
        out->columns.push_back(column);
    }
    PyArrayObject* a = as_array(rows);
    if (PyArray_TYPE(a) != NPY_DOUBLE || !is_plain(a) || PyArray_SIZE(a) < times * count) {
        PyErr_SetString(PyExc_ValueError, "Tape.epoch: a table of numbers is too small");
        return false;
    }
    out->numbers = data<double>(a);
    return true;
}

// Who sets the numbers of the updates of a repetition: tables, or the updates themselves.
struct Numbers {
    std::vector<Table> tables;
    std::vector<Step*> updates;  // without a table

    bool read(PyObject* self, PyObject* given, Py_ssize_t times) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
            tables.emplace_back();
            if (!table_of(self, PyTuple_GET_ITEM(given, i), times, &tables.back())) return false;
        }
        for (const auto& step : *as_tape(self)->steps) {
            bool has = step->kind != Kind::update;
            for (const Table& t : tables) has = has || t.step == step.get();
            if (!has) updates.push_back(step.get());
        }
        return true;
    }

    bool set(Py_ssize_t k) const {
        for (const Table& table : tables)
            if (!table.set(k)) return false;
        for (Step* update : updates)
            if (!advance(update)) return false;
        return true;
    }
};

// Reads the order of rows, if there is one, and whether there are enough of them for so many
// repetitions.
bool rows_of(PyObject* order, const std::vector<Feed>& feeds, Py_ssize_t times,
             const std::int64_t** out) {
    const std::int64_t batch = feeds.empty() ? 0 : feeds[0].count;
    const std::int64_t* rows = nullptr;
    if (order != Py_None) {
        PyArrayObject* o = as_array(order);
        if (o == nullptr || PyArray_TYPE(o) != NPY_INT64 || !is_plain(o) ||
            PyArray_SIZE(o) < times * batch) {
            PyErr_SetString(PyExc_ValueError, "Tape.epoch: the order has too few rows");
            return false;
        }
        rows = data<std::int64_t>(o);
        for (std::int64_t i = 0; i < times * batch; ++i)
            for (const Feed& f : feeds)
                if (rows[i] < 0 || rows[i] >= f.rows) {
                    PyErr_SetString(PyExc_IndexError, "Tape.epoch: the order names a row too many");
                    return false;
                }
    }
    for (const Feed& f : feeds)
        if (f.count != batch || (rows == nullptr && times * batch > f.rows)) {
            PyErr_SetString(PyExc_ValueError, "Tape.epoch: there are too few samples");
            return false;
        }
    *out = rows;
    return true;
}

// epoch(steps, targets, sources, order, loss, losses, tables): runs all steps so many times, each
// time with the next rows and the next numbers of each update, from its table (step, names, rows)
// if there is one; keeps each loss. Returns (repetitions done, the check that failed or -1).
PyObject* epoch(PyObject* self, PyObject* given) {
    as_tape(self)->done = as_tape(self)->at = 0;
    Py_ssize_t times;
    PyObject *targets, *sources, *order, *loss, *losses, *tables;
    if (!PyArg_ParseTuple(given, "nO!O!OOOO!", &times, &PyTuple_Type, &targets, &PyTuple_Type,
                          &sources, &order, &loss, &losses, &PyTuple_Type, &tables))
        return nullptr;
    std::vector<Feed> feeds;
    const std::int64_t* rows = nullptr;
    if (!feeds_of(targets, sources, &feeds) || !rows_of(order, feeds, times, &rows)) return nullptr;
    const std::int64_t batch = feeds.empty() ? 0 : feeds[0].count;
    PyArrayObject *from = as_array(loss), *to = as_array(losses);
    const bool keeps = from != nullptr && to != nullptr;
    if (keeps && (PyArray_SIZE(from) != 1 || PyArray_SIZE(to) < times || !is_plain(to) ||
                  PyArray_TYPE(from) != PyArray_TYPE(to))) {
        PyErr_SetString(PyExc_ValueError, "Tape.epoch: there is no room for the losses");
        return nullptr;
    }
    const auto& steps = *as_tape(self)->steps;
    Numbers numbers;
    if (!numbers.read(self, tables, times)) return nullptr;
    Supply mine{false, {}};
    auto looked = std::chrono::steady_clock::now(), last = looked;
    Py_ssize_t every = 1, next = 0;  // repetitions between readings of the clock
    const bool alone = are_alone(steps);
    Gil gil(alone);
    for (Py_ssize_t k = 0; k < times; ++k) {
        for (const Feed& f : feeds) f.fill(rows, k * batch);
        if (!numbers.set(k)) {
            gil.take();
            PyErr_SetString(PyExc_ZeroDivisionError, "Tape.epoch: an update divides by zero");
            return nullptr;
        }
        const Py_ssize_t code =
            run_range(as_tape(self), 0, static_cast<Py_ssize_t>(steps.size()), &mine, &gil);
        if (code != DONE) gil.take();
        if (code == FAILED) return nullptr;
        if (code != DONE) return Py_BuildValue("nn", k, code);
        as_tape(self)->done = k + 1;
        as_tape(self)->at = 0;
        if (keeps) {
            const int size = static_cast<int>(PyArray_ITEMSIZE(from));
            std::memcpy(PyArray_BYTES(to) + k * size, PyArray_DATA(from),
                        static_cast<std::size_t>(size));
        }
        if (k < next) continue;
        const auto now = std::chrono::steady_clock::now();
        every = now - last < std::chrono::milliseconds(1) ? every * 2 : 1;
        if (every > 64) every = 64;
        next = k + every;
        last = now;
        if (now - looked > std::chrono::milliseconds(50)) {
            looked = now;
            if (!alone) {
                Py_BEGIN_ALLOW_THREADS Py_END_ALLOW_THREADS;
            }
            gil.take();
            if (PyErr_CheckSignals() < 0) return nullptr;
            gil.give_up();
        }
    }
    gil.take();
    return Py_BuildValue("nn", times, DONE);
}

// --- the type ------------------------------------------------------------------------------------

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) as_tape(self)->steps = new std::vector<std::unique_ptr<Step>>();
    return self;
}

void destroy(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    delete as_tape(self)->steps;
    type->tp_free(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"add", add, METH_VARARGS, "Computes a call, and keeps it."},
    {"add_check", add_check, METH_VARARGS, "Keeps a call that has to give an answer."},
    {"add_copy", add_copy, METH_VARARGS, "Copies elements, and keeps that."},
    {"join", join, METH_VARARGS, "Makes one step of elementwise ones."},
    {"add_update", add_update, METH_O, "Keeps an update of parameters."},
    {"set_numbers", fast(set_numbers), METH_FASTCALL, "Rate and constants of an update."},
    {"set_moving", set_moving, METH_VARARGS, "Constants that follow from the step."},
    {"set_argument", set_argument, METH_VARARGS, "Another argument of a call of Python's."},
    {"run", fast(run), METH_FASTCALL, "Runs a range of steps; the check that failed, or -1."},
    {"position", position, METH_NOARGS, "Repetitions done, and the step after them."},
    {"epoch", epoch, METH_VARARGS, "Runs all steps many times, with the rows of arrays."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {Py_sq_length, reinterpret_cast<void*>(length_of)},
    {Py_tp_doc, const_cast<char*>("Calls of kernels that are run again.")},
    {0, nullptr},
};

PyType_Spec spec = {"chainrule.backend._native.Tape", sizeof(Tape), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

Py_ssize_t tape_run(PyObject* tape) { return run_once(as_tape(tape), 0, length_of(tape)); }

Py_ssize_t tape_at(PyObject* tape) { return as_tape(tape)->at; }

bool tape_advance(PyObject* tape, Py_ssize_t update) {
    Step* step = step_at(tape, update, Kind::update);
    return step != nullptr && advance(step);
}

bool tape_set_argument(PyObject* tape, Py_ssize_t number, Py_ssize_t place, PyObject* value) {
    Step* step = nullptr;
    for (const Kind kind : {Kind::python, Kind::native, Kind::drawn}) {
        if (step != nullptr) break;
        PyErr_Clear();
        step = step_at(tape, number, kind);
    }
    if (step == nullptr) return false;
    if (place < 0 || place >= static_cast<Py_ssize_t>(step->args.size())) {
        PyErr_SetString(PyExc_IndexError, "Tape.set_argument: there is no such argument");
        return false;
    }
    PyObject* before = step->args[static_cast<std::size_t>(place)];
    step->args[static_cast<std::size_t>(place)] = held(value);
    Py_DECREF(before);
    return true;
}

bool make_tape_type() {
    tape_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return tape_type != nullptr;
}

}  // namespace chainrule
