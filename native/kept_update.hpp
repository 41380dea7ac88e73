// An optimizer's update of parameters that is run again, with other numbers.
#pragma once

#include <memory>

#include "binding.hpp"

namespace chainrule {

class KeptUpdate {
  public:
    // From the arguments of write_updates; null if they are such that NumPy sees to them. The
    // arrays have to live as long.
    static std::unique_ptr<KeptUpdate> of(PyObject* const* args, Py_ssize_t count);
    ~KeptUpdate();

    // Whether the rates are arrays, which are read again at each run.
    bool has_rates() const;
    // All constants, as write_updates gets them; false if Python is to see to them.
    bool set(PyObject* constants);
    void set_rate(double lr);
    // The number of a constant by its name; -1 if there is none.
    static int constant(const char* name);
    // False if the rule would divide by zero.
    bool set_constant(int number, double value);
    void run() const;

  private:
    struct Inside;
    explicit KeptUpdate(std::unique_ptr<Inside> inside);
    std::unique_ptr<Inside> inside_;
};

}  // namespace chainrule
