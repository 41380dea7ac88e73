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

    // The rate and all constants, as write_updates gets them; false if Python is to see to them.
    bool set(double lr, PyObject* constants);
    bool set_rate(double lr);
    // One constant by its name; false if there is none, or if the rule would divide by zero.
    bool set_constant(const char* name, double value);
    void run() const;

  private:
    struct Inside;
    explicit KeptUpdate(std::unique_ptr<Inside> inside);
    std::unique_ptr<Inside> inside_;
};

}  // namespace chainrule
