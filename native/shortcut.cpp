// The Python types Shortcut (what a call of a compiled function looks at, runs and leaves behind)
// and Repeater (the base class of compiled functions, which takes the shortcut where it can).
//
// A shortcut never decides that something has changed: it sees that an object is another one than
// the last time, and asks Python (`recheck`, or the whole call again by `_call`).
#include "shortcut.hpp"

#include <structmember.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tape.hpp"

namespace chainrule {
namespace {

// --- objects of Python with __slots__ ------------------------------------------------------------

// The place of a slot in the objects of a class; -1 with an error.
Py_ssize_t offset_of(PyObject* type, const char* name) {
    PyObject* d = PyObject_GetAttrString(type, name);
    if (d == nullptr) return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(d, &PyMemberDescr_Type))
        offset = reinterpret_cast<PyMemberDescrObject*>(d)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "Shortcut: %s is no slot", name);
    Py_DECREF(d);
    return offset;
}

PyObject* get(PyObject* o, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
}

void set(PyObject* o, Py_ssize_t offset, PyObject* value) {
    PyObject** place = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + offset);
    PyObject* before = *place;
    Py_INCREF(value);
    *place = value;
    Py_XDECREF(before);
}

// --- what a shortcut knows -----------------------------------------------------------------------

struct Input {
    PyArrayObject* target;
    PyObject* needs_grad;
};
struct State {
    PyObject* reference;  // a weak one, to the tensor
    PyObject* array;
    PyObject* needs_grad;
};
struct Entry {
    PyObject *dict, *key;
};
struct Update {
    Py_ssize_t number;            // of the step of the tape
    PyObject* prepare;            // asks Python for its numbers
    PyObject* group;              // whose values they follow from
    PyObject* held;               // list of the parameters' states, or None if no steps are counted
    std::vector<PyObject*> seen;  // the values of the group
    long long time = -1;          // the number of the last step
};
struct Draw {
    Py_ssize_t number, place;
    PyObject* generator;
};
struct Gradient {
    PyObject *leaf, *tensor;
};

struct Inside {
    Py_ssize_t array, needs_grad, grad, node, store, view, last_write;  // places in objects
    PyTypeObject* tensor;
    PyObject *tape, *acquire, *release, *recheck, *failed, *finish, *touch, *next_seq, *inference;
    PyObject *mode, *flags, *stance, *stance_name, *changes;
    long long count = 0;  // of the changes of modules
    std::vector<Input> inputs;
    std::vector<PyObject*> cells, dicts, lists, without, written, optimizers;
    std::vector<Entry> entries;
    std::vector<State> states;
    std::vector<Update> updates;
    std::vector<Draw> draws;
    std::vector<Gradient> gradients;
    PyArrayObject* result = nullptr;  // what is returned, a copy of it
    std::vector<PyObject*> seen;      // what the cells and dictionaries held
};

struct Shortcut {
    PyObject_HEAD Inside* in;
    PyObject* held;  // all objects that are named inside
};

Shortcut* as_shortcut(PyObject* o) { return reinterpret_cast<Shortcut*>(o); }

struct Names {
    PyObject *flags, *name, *count, *raw, *step, *steps_taken, *call;
} names;

// --- looking -------------------------------------------------------------------------------------

void values_of(PyObject* dict, std::vector<PyObject*>* out) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key, &value)) out->push_back(value);
}

void look(const Inside& in, std::vector<PyObject*>* out) {
    for (PyObject* cell : in.cells) out->push_back(PyCell_GET(cell));
    for (const Entry& e : in.entries) out->push_back(PyDict_GetItemWithError(e.dict, e.key));
    for (PyObject* dict : in.dicts) values_of(dict, out);
    for (PyObject* list : in.lists)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
            out->push_back(PyList_GET_ITEM(list, i));
}

// Replaces what was seen; references are held, so that no other object gets the same address.
void keep(std::vector<PyObject*>* seen, std::vector<PyObject*>* now) {
    for (PyObject* o : *now) Py_XINCREF(o);
    seen->swap(*now);
    for (PyObject* o : *now) Py_XDECREF(o);
}

// An attribute that is a whole number; -1 with an error.
long long whole(PyObject* o, PyObject* name) {
    PyObject* value = PyObject_GetAttr(o, name);
    if (value == nullptr) return -1;
    const long long n = PyLong_AsLongLong(value);
    Py_DECREF(value);
    return n;
}

// Whether an attribute is this very object; -1 with an error.
int is_still(PyObject* o, PyObject* name, PyObject* wanted) {
    PyObject* value = PyObject_GetAttr(o, name);
    if (value == nullptr) return -1;
    Py_DECREF(value);
    return value == wanted;
}

bool fits(const Inside& in, PyObject* args) {
    if (PyTuple_GET_SIZE(args) != static_cast<Py_ssize_t>(in.inputs.size())) return false;
    for (std::size_t i = 0; i < in.inputs.size(); ++i) {
        PyObject* t = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
        if (!Py_IS_TYPE(t, in.tensor) || get(t, in.needs_grad) != in.inputs[i].needs_grad)
            return false;
        PyObject* held = get(t, in.array);
        PyArrayObject* target = in.inputs[i].target;
        if (held == nullptr || !PyArray_CheckExact(held)) return false;
        PyArrayObject* a = as_array(held);
        if (PyArray_TYPE(a) != PyArray_TYPE(target) || PyArray_NDIM(a) != PyArray_NDIM(target) ||
            !PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(target), PyArray_NDIM(a)) ||
            !is_plain(a))
            return false;
    }
    return true;
}

bool states_stay(const Inside& in) {
    for (const State& s : in.states) {
        PyObject* t = PyWeakref_GET_OBJECT(s.reference);
        if (t == Py_None || get(t, in.array) != s.array || get(t, in.needs_grad) != s.needs_grad)
            return false;
    }
    for (PyObject* leaf : in.without)
        if (get(leaf, in.grad) != Py_None) return false;
    return true;
}

// 1 if everything is as it was, 0 if Python has to see to the call, -1 with an error.
int unchanged(Inside* in) {
    const int same_mode = is_still(in->mode, names.flags, in->flags);
    const int same_stance = is_still(in->stance, names.name, in->stance_name);
    if (same_mode < 0 || same_stance < 0) return -1;
    if (!same_mode || !same_stance || !states_stay(*in)) return 0;
    const long long count = whole(in->changes, names.count);
    if (PyErr_Occurred()) return -1;
    std::vector<PyObject*> now;
    now.reserve(in->seen.size());
    look(*in, &now);
    if (count == in->count && now == in->seen) return 1;
    keep(&in->seen, &now);
    PyObject* answer = PyObject_CallNoArgs(in->recheck);
    if (answer == nullptr) return -1;
    const int same = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    in->count = same > 0 ? count : -1;
    return same;
}

// --- running -------------------------------------------------------------------------------------

void feed(const Inside& in, PyObject* args) {
    for (std::size_t i = 0; i < in.inputs.size(); ++i) {
        PyArrayObject* target = in.inputs[i].target;
        PyObject* t = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
        std::memcpy(PyArray_DATA(target), PyArray_DATA(as_array(get(t, in.array))),
                    static_cast<std::size_t>(PyArray_NBYTES(target)));
    }
}

bool draw(const Inside& in) {
    for (const Draw& d : in.draws) {
        PyObject* raw = PyObject_GetAttr(d.generator, names.raw);
        if (raw == nullptr) return false;
        const bool done = tape_set_argument(in.tape, d.number, d.place, raw);
        Py_DECREF(raw);
        if (!done) return false;
    }
    return true;
}

// Whether the numbers of an update follow from those of its last step.
bool follows(const Update& u) {
    if (u.time < 0) return false;
    std::vector<PyObject*> now;
    now.reserve(u.seen.size());
    values_of(u.group, &now);
    if (now != u.seen) return false;
    if (u.held == Py_None) return true;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(u.held); ++i) {
        PyObject* step = PyDict_GetItemWithError(PyList_GET_ITEM(u.held, i), names.step);
        if (step == nullptr || !PyLong_CheckExact(step) || PyLong_AsLongLong(step) != u.time)
            return false;
    }
    return true;
}

// Sets the numbers of the next step of each update.
bool count_up(Inside* in) {
    for (Update& u : in->updates) {
        if (!follows(u)) {
            PyObject* time = PyObject_CallNoArgs(u.prepare);
            if (time == nullptr) return false;
            const bool known = time != Py_None;
            u.time = known ? PyLong_AsLongLong(time) : -1;
            Py_DECREF(time);
            if (!known) return false;  // Python has to see to it
            std::vector<PyObject*> now;
            values_of(u.group, &now);
            keep(&u.seen, &now);
        }
        if (!tape_advance(in->tape, u.number)) {
            u.time = -1;
            PyErr_SetString(PyExc_ZeroDivisionError, "compile: an update divides by zero");
            return false;
        }
    }
    return true;
}

// Writes the numbers of the steps that were taken, those before step `end` of the tape.
bool write_counts(Inside* in, Py_ssize_t end) {
    for (Update& u : in->updates) {
        if (u.number >= end) {
            u.time = -1;
            continue;
        }
        u.time += 1;
        if (u.held == Py_None) continue;
        PyObject* step = PyLong_FromLongLong(u.time);
        if (step == nullptr) return false;
        bool done = true;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(u.held) && done; ++i)
            done = PyDict_SetItem(PyList_GET_ITEM(u.held, i), names.step, step) == 0;
        Py_DECREF(step);
        if (!done) return false;
    }
    return true;
}

// The tensors that were written have changed at this moment.
bool touch(const Inside& in) {
    if (in.written.empty()) return true;
    PyObject* now = PyObject_CallNoArgs(in.next_seq);
    if (now == nullptr) return false;
    for (PyObject* t : in.written) {
        PyObject* store = get(t, in.store);
        if (store == in.inference) continue;
        if (store != Py_None) {
            set(store, in.last_write, now);
            continue;
        }
        PyObject* done = PyObject_CallOneArg(in.touch, t);
        if (done == nullptr) {
            Py_DECREF(now);
            return false;
        }
        Py_DECREF(done);
    }
    Py_DECREF(now);
    return true;
}

bool leave(const Inside& in) {
    for (const Gradient& g : in.gradients) set(g.leaf, in.grad, g.tensor);
    if (!touch(in)) return false;
    for (PyObject* optimizer : in.optimizers) {
        const long long taken = whole(optimizer, names.steps_taken);
        if (PyErr_Occurred()) return false;
        PyObject* next = PyLong_FromLongLong(taken + 1);
        const bool done =
            next != nullptr && PyObject_SetAttr(optimizer, names.steps_taken, next) == 0;
        Py_XDECREF(next);
        if (!done) return false;
    }
    return true;
}

PyObject* returned(const Inside& in) {
    if (in.result == nullptr) return PyObject_CallNoArgs(in.finish);
    PyObject* array = PyArray_NewCopy(in.result, NPY_CORDER);
    if (array == nullptr) return nullptr;
    PyObject* t = in.tensor->tp_alloc(in.tensor, 0);
    if (t != nullptr) {
        set(t, in.array, array);
        set(t, in.needs_grad, Py_False);
        for (const Py_ssize_t place : {in.node, in.grad, in.store, in.view}) set(t, place, Py_None);
    }
    Py_DECREF(array);
    return t;
}

constexpr Py_ssize_t DONE = -1, FAILED = -2;

// The call under its lock; null without an error if Python has to see to it.
PyObject* run_locked(Inside* in, PyObject* args, Py_ssize_t* repeated) {
    const int same = unchanged(in);
    if (same <= 0) return nullptr;
    feed(*in, args);
    if (!draw(*in) || !count_up(in)) return nullptr;
    const Py_ssize_t code = tape_run(in->tape);
    if (code == DONE) {
        if (!write_counts(in, PY_SSIZE_T_MAX) || !leave(*in)) return nullptr;
        *repeated += 1;
        return returned(*in);
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const bool counted = write_counts(in, code == FAILED ? tape_at(in->tape) : code);
    if (code == FAILED) {
        if (counted) PyErr_Restore(type, value, trace);
        return nullptr;
    }
    return counted ? PyObject_CallFunction(in->failed, "On", args, code) : nullptr;
}

// --- making a shortcut ---------------------------------------------------------------------------

// Reads what Python says of a shortcut: attributes of one object, all of which are kept.
struct Reader {
    PyObject *spec, *held;
    bool good = true;

    PyObject* one(const char* name) {
        PyObject* value = good ? PyObject_GetAttrString(spec, name) : nullptr;
        good = value != nullptr && PyList_Append(held, value) == 0;
        Py_XDECREF(value);  // the list has it
        return value;
    }

    std::vector<PyObject*> many(const char* name) {
        std::vector<PyObject*> out;
        PyObject* value = one(name);
        if (good && !PyTuple_Check(value)) {
            PyErr_Format(PyExc_TypeError, "Shortcut: %s has to be a tuple", name);
            good = false;
        }
        for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(value); ++i)
            out.push_back(PyTuple_GET_ITEM(value, i));
        return out;
    }

    // Tuples of so many parts each.
    std::vector<PyObject*> rows(const char* name, Py_ssize_t parts) {
        std::vector<PyObject*> out = many(name);
        for (PyObject* row : out)
            if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != parts) {
                PyErr_Format(PyExc_TypeError, "Shortcut: %s are tuples of %zd", name, parts);
                good = false;
                return {};
            }
        return out;
    }

    Py_ssize_t place(PyObject* type, const char* name) {
        const Py_ssize_t offset = good ? offset_of(type, name) : 0;
        good = good && offset >= 0;
        return offset;
    }

    bool all_are(const std::vector<PyObject*>& objects, PyTypeObject* type) {
        for (PyObject* o : objects)
            if (!PyObject_TypeCheck(o, type)) {
                PyErr_Format(PyExc_TypeError, "Shortcut: expected %s", type->tp_name);
                good = false;
            }
        return good;
    }
};

PyObject* part(PyObject* row, Py_ssize_t i) { return PyTuple_GET_ITEM(row, i); }

void read_objects(Reader* r, Inside* in) {
    PyObject* tensor = r->one("tensor");
    PyObject* storage = r->one("storage");
    if (r->good && !(PyType_Check(tensor) && PyType_Check(storage))) {
        PyErr_SetString(PyExc_TypeError, "Shortcut: tensor and storage are classes");
        r->good = false;
    }
    in->tensor = reinterpret_cast<PyTypeObject*>(tensor);
    in->array = r->place(tensor, "array");
    in->needs_grad = r->place(tensor, "needs_grad");
    in->grad = r->place(tensor, "_grad");
    in->node = r->place(tensor, "_node");
    in->store = r->place(tensor, "_store");
    in->view = r->place(tensor, "_view");
    in->last_write = r->place(storage, "last_write");
    in->tape = r->one("tape");
    in->acquire = r->one("acquire");
    in->release = r->one("release");
    in->recheck = r->one("recheck");
    in->failed = r->one("failed");
    in->finish = r->one("finish");
    in->touch = r->one("touch");
    in->next_seq = r->one("next_seq");
    in->inference = r->one("inference");
    in->mode = r->one("mode");
    in->flags = r->one("flags");
    in->stance = r->one("stance");
    in->stance_name = r->one("stance_name");
    in->changes = r->one("changes");
    PyObject* result = r->one("result");
    in->result = r->good ? as_array(result) : nullptr;
    if (r->good && !Py_IS_TYPE(in->tape, tape_type)) {
        PyErr_SetString(PyExc_TypeError, "Shortcut: expected a tape");
        r->good = false;
    }
}

void read_lists(Reader* r, Inside* in) {
    in->cells = r->many("cells");
    in->dicts = r->many("dicts");
    in->lists = r->many("lists");
    in->without = r->many("without");
    in->written = r->many("written");
    in->optimizers = r->many("optimizers");
    if (!r->good || !r->all_are(in->cells, &PyCell_Type) || !r->all_are(in->dicts, &PyDict_Type) ||
        !r->all_are(in->lists, &PyList_Type) || !r->all_are(in->without, in->tensor) ||
        !r->all_are(in->written, in->tensor))
        return;
    for (PyObject* row : r->rows("inputs", 2)) {
        if (!r->all_are({part(row, 0)}, &PyArray_Type)) return;
        in->inputs.push_back({as_array(part(row, 0)), part(row, 1)});
    }
    for (PyObject* row : r->rows("entries", 2)) {
        if (!r->all_are({part(row, 0)}, &PyDict_Type)) return;
        in->entries.push_back({part(row, 0), part(row, 1)});
    }
    for (PyObject* row : r->rows("states", 3)) {
        if (!PyWeakref_CheckRef(part(row, 0))) {
            PyErr_SetString(PyExc_TypeError, "Shortcut: states are found by weak references");
            r->good = false;
            return;
        }
        in->states.push_back({part(row, 0), part(row, 1), part(row, 2)});
    }
    for (PyObject* row : r->rows("updates", 4)) {
        if (!r->all_are({part(row, 2)}, &PyDict_Type)) return;
        if (part(row, 3) != Py_None && !r->all_are({part(row, 3)}, &PyList_Type)) return;
        Update u;
        u.number = PyLong_AsSsize_t(part(row, 0));
        u.prepare = part(row, 1);
        u.group = part(row, 2);
        u.held = part(row, 3);
        in->updates.push_back(u);
    }
    for (PyObject* row : r->rows("draws", 3))
        in->draws.push_back(
            {PyLong_AsSsize_t(part(row, 0)), PyLong_AsSsize_t(part(row, 1)), part(row, 2)});
    for (PyObject* row : r->rows("gradients", 2)) {
        if (!r->all_are({part(row, 0), part(row, 1)}, in->tensor)) return;
        in->gradients.push_back({part(row, 0), part(row, 1)});
    }
    r->good = r->good && !PyErr_Occurred();
}

PyObject* make_shortcut(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject* spec;
    if (!PyArg_ParseTuple(args, "O", &spec)) return nullptr;
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    as_shortcut(self)->in = new Inside();
    as_shortcut(self)->held = PyList_New(0);
    Reader r{spec, as_shortcut(self)->held};
    Inside* in = as_shortcut(self)->in;
    if (r.held != nullptr) read_objects(&r, in);
    if (r.held != nullptr && r.good) read_lists(&r, in);
    if (r.held == nullptr || !r.good) {
        Py_DECREF(self);
        return nullptr;
    }
    in->count = whole(in->changes, names.count);
    std::vector<PyObject*> now;
    look(*in, &now);
    keep(&in->seen, &now);
    return self;
}

int clear_shortcut(PyObject* self) {
    Inside* in = as_shortcut(self)->in;
    if (in != nullptr) {
        std::vector<PyObject*> none;
        keep(&in->seen, &none);
        for (Update& u : in->updates) {
            std::vector<PyObject*> no_values;
            keep(&u.seen, &no_values);
        }
    }
    Py_CLEAR(as_shortcut(self)->held);
    return 0;
}

int visit_shortcut(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_shortcut(self)->held);
    const Inside* in = as_shortcut(self)->in;
    if (in == nullptr) return 0;
    for (PyObject* o : in->seen) Py_VISIT(o);
    for (const Update& u : in->updates)
        for (PyObject* o : u.seen) Py_VISIT(o);
    return 0;
}

void destroy_shortcut(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_shortcut(self);
    delete as_shortcut(self)->in;
    type->tp_free(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyType_Slot shortcut_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_shortcut)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_shortcut)},
    {Py_tp_traverse, reinterpret_cast<void*>(visit_shortcut)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_shortcut)},
    {Py_tp_doc, const_cast<char*>("A call of a compiled function, as long as nothing changes.")},
    {0, nullptr},
};

PyType_Spec shortcut_spec = {"chainrule.backend._native.Shortcut", sizeof(Shortcut), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, shortcut_slots};
PyTypeObject* shortcut_type = nullptr;

// --- functions that take it ----------------------------------------------------------------------

struct Repeater {
    PyObject_HEAD PyObject* shortcut;  // or null
    Py_ssize_t repeated;               // calls that were
};

Repeater* as_repeater(PyObject* o) { return reinterpret_cast<Repeater*>(o); }

PyObject* by_python(PyObject* self, PyObject* args, PyObject* kwargs) {
    PyObject* method = PyObject_GetAttr(self, names.call);
    if (method == nullptr) return nullptr;
    PyObject* out = PyObject_Call(method, args, kwargs);
    Py_DECREF(method);
    return out;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
    PyObject* shortcut = as_repeater(self)->shortcut;
    if (shortcut == nullptr || (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) ||
        as_shortcut(shortcut)->held == nullptr || !fits(*as_shortcut(shortcut)->in, args))
        return by_python(self, args, kwargs);
    Inside* in = as_shortcut(shortcut)->in;
    Py_INCREF(shortcut);  // the call may replace it
    PyObject* out = nullptr;
    PyObject* locked = PyObject_CallNoArgs(in->acquire);
    if (locked != nullptr) {
        Py_DECREF(locked);
        out = run_locked(in, args, &as_repeater(self)->repeated);
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject* freed = PyObject_CallNoArgs(in->release);
        if (freed == nullptr) Py_CLEAR(out);
        if (type != nullptr) PyErr_Restore(type, value, trace);
        Py_XDECREF(freed);
    }
    Py_DECREF(shortcut);
    if (out != nullptr || PyErr_Occurred()) return out;
    return by_python(self, args, kwargs);
}

// take(shortcut or None): for the calls to come
PyObject* take(PyObject* self, PyObject* shortcut) {
    if (shortcut != Py_None && !Py_IS_TYPE(shortcut, shortcut_type)) {
        PyErr_SetString(PyExc_TypeError, "take: expected a Shortcut or None");
        return nullptr;
    }
    PyObject* value = shortcut == Py_None ? nullptr : shortcut;
    Py_XINCREF(value);
    Py_XSETREF(as_repeater(self)->shortcut, value);
    Py_RETURN_NONE;
}

PyObject* get_repeated(PyObject* self, void*) {
    return PyLong_FromSsize_t(as_repeater(self)->repeated);
}

int set_repeated(PyObject* self, PyObject* value, void*) {
    if (value == nullptr) {
        PyErr_SetString(PyExc_AttributeError, "repeated cannot be deleted");
        return -1;
    }
    const Py_ssize_t n = PyLong_AsSsize_t(value);
    if (n == -1 && PyErr_Occurred()) return -1;
    as_repeater(self)->repeated = n;
    return 0;
}

int clear_repeater(PyObject* self) {
    Py_CLEAR(as_repeater(self)->shortcut);
    return 0;
}

int visit_repeater(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_repeater(self)->shortcut);
    return 0;
}

void destroy_repeater(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear_repeater(self);
    type->tp_free(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMethodDef repeater_methods[] = {
    {"take", take, METH_O, "Sets the shortcut of the calls to come, or None."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef repeater_attributes[] = {
    {"repeated", get_repeated, set_repeated, "How many calls were repeated from a record.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot repeater_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_repeater)},
    {Py_tp_traverse, reinterpret_cast<void*>(visit_repeater)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_repeater)},
    {Py_tp_call, reinterpret_cast<void*>(call)},
    {Py_tp_methods, repeater_methods},
    {Py_tp_getset, repeater_attributes},
    {Py_tp_doc, const_cast<char*>("A function whose calls can take a shortcut.")},
    {0, nullptr},
};

PyType_Spec repeater_spec = {"chainrule.backend._native.Repeater", sizeof(Repeater), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                             repeater_slots};

bool name(PyObject** place, const char* text) {
    *place = PyUnicode_InternFromString(text);
    return *place != nullptr;
}

}  // namespace

bool add_shortcut_types(PyObject* module) {
    if (!name(&names.flags, "flags") || !name(&names.name, "name") ||
        !name(&names.count, "count") || !name(&names.raw, "raw") || !name(&names.step, "step") ||
        !name(&names.steps_taken, "_steps_taken") || !name(&names.call, "_call"))
        return false;
    shortcut_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&shortcut_spec));
    PyObject* repeater = PyType_FromSpec(&repeater_spec);
    if (shortcut_type == nullptr || repeater == nullptr) return false;
    Py_INCREF(reinterpret_cast<PyObject*>(shortcut_type));
    return PyModule_AddObject(module, "Shortcut", reinterpret_cast<PyObject*>(shortcut_type)) ==
               0 &&
           PyModule_AddObject(module, "Repeater", repeater) == 0;
}

}  // namespace chainrule
