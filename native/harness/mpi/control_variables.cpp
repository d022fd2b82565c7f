// Finds, reads and writes control variables through MPI_T.
#include "harness/mpi/control_variables.hpp"

#include <mpi.h>

#include <cctype>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "harness/text/json.hpp"
#include "harness/text/numbers.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

struct Description {
  std::string name;
  MPI_Datatype type;
  int bind;
};

// Returns false if the MPI gives no information about variable `index`.
bool describe(int index, Description &description) {
  char name[256], text[1024];
  int name_length = sizeof name, text_length = sizeof text, verbosity, scope;
  MPI_T_enum enumeration;
  if (MPI_T_cvar_get_info(index, name, &name_length, &verbosity, &description.type, &enumeration, text, &text_length,
                          &description.bind, &scope) != MPI_SUCCESS)
    return false;
  description.name = name;
  return true;
}

bool mentions_threshold(std::string name) {
  for (char &c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char *keyword : {"eager", "rndv", "rendezvous", "threshold"}) {
    if (name.find(keyword) != std::string::npos) return true;
  }
  return false;
}

// A value as the MPI stores it: the bytes of one element or of a string.
using Bytes = std::vector<char>;

// Conversion of the elements of a type to and from text.
struct Notation {
  bool (*to_bytes)(const std::string &text, Bytes &bytes);
  std::string (*to_text)(const Bytes &bytes);
};

template <class Number>
bool number_to_bytes(const std::string &text, Bytes &bytes) {
  const std::optional<long long> value = read_integer(text);
  if (!value || (*value < 0 && !std::numeric_limits<Number>::is_signed)) return false;
  const auto number = static_cast<Number>(*value);
  if (static_cast<long long>(number) != *value) return false;
  bytes.resize(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return true;
}

template <class Number>
std::string number_to_text(const Bytes &bytes) {
  Number number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return std::to_string(number);
}

bool string_to_bytes(const std::string &text, Bytes &bytes) {
  bytes.assign(text.begin(), text.end());
  bytes.push_back('\0');
  return true;
}

std::string string_to_text(const Bytes &bytes) { return bytes.data(); }

template <class Number>
constexpr Notation number_notation{number_to_bytes<Number>, number_to_text<Number>};

// For variables of one element and for strings; null for all others.
const Notation *find_notation(MPI_Datatype type, int elements) {
  static constexpr Notation text{string_to_bytes, string_to_text};
  // Open MPI 5.0.11 represents a bool as one character.
  if (type == MPI_CHAR) return elements == 1 ? &number_notation<signed char> : &text;
  if (elements != 1) return nullptr;
  if (type == MPI_INT) return &number_notation<int>;
  if (type == MPI_UNSIGNED) return &number_notation<unsigned>;
  if (type == MPI_LONG) return &number_notation<long>;
  if (type == MPI_UNSIGNED_LONG) return &number_notation<unsigned long>;
  if (type == MPI_LONG_LONG) return &number_notation<long long>;
  if (type == MPI_UNSIGNED_LONG_LONG) return &number_notation<unsigned long long>;
  if (type == MPI_COUNT) return &number_notation<MPI_Count>;
  if (type == MPI_C_BOOL) return &number_notation<bool>;
  return nullptr;
}

// Open MPI counts the characters of a string without the terminator, and may store longer strings than it counts.
constexpr std::size_t max_text_bytes = 4096;

}  // namespace

struct ControlVariables::Variable {
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int elements = 0;
  const Notation *notation = nullptr;
};

std::string threshold_variables() {
  JsonObject object;
  int provided, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return object.str();
  MPI_T_cvar_get_num(&count);
  for (int k = 0; k < count; ++k) {
    Description description;
    if (!describe(k, description) || description.bind != MPI_T_BIND_NO_OBJECT || !mentions_threshold(description.name)) continue;
    const MPI_Datatype type = description.type;
    const bool whole = type == MPI_INT || type == MPI_UNSIGNED || type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG;
    if (!whole) continue;
    MPI_T_cvar_handle handle;
    int elements;
    if (MPI_T_cvar_handle_alloc(k, nullptr, &handle, &elements) != MPI_SUCCESS) continue;
    unsigned long long value = 0;
    if (elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) {
      const long long number = type == MPI_INT ? static_cast<int>(value) : static_cast<long long>(value);
      object.add(description.name, std::to_string(number));
    }
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return object.str();
}

ControlVariables::ControlVariables() {
  int provided;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
    refuse("this MPI cannot initialize its tool interface (MPI_T), which is needed to set control variables");
}

ControlVariables::~ControlVariables() {
  for (auto &entry : variables_) MPI_T_cvar_handle_free(&entry.second->handle);
  MPI_T_finalize();
}

ControlVariables::Variable &ControlVariables::find(const std::string &name, const std::string &source) {
  std::unique_ptr<Variable> &variable = variables_[name];
  if (variable) return *variable;
  variable = std::make_unique<Variable>();
  int index;
  Description description;
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS || !describe(index, description))
    refuse("this MPI has no control variable " + name + ", which " + source +
           " set; use the control variables of this version of the MPI");
  if (description.bind != MPI_T_BIND_NO_OBJECT ||
      MPI_T_cvar_handle_alloc(index, nullptr, &variable->handle, &variable->elements) != MPI_SUCCESS)
    refuse("this MPI's control variable " + name + ", which " + source + " set, is not a global variable");
  variable->type = description.type;
  variable->notation = find_notation(description.type, variable->elements);
  if (variable->notation == nullptr)
    refuse("this MPI's control variable " + name + ", which " + source + " set, is neither an integer nor a string");
  return *variable;
}

std::string ControlVariables::read(const std::string &name, const std::string &source) {
  const Variable &variable = find(name, source);
  Bytes bytes(max_text_bytes + static_cast<std::size_t>(variable.elements), '\0');
  if (MPI_T_cvar_read(variable.handle, bytes.data()) != MPI_SUCCESS)
    refuse("this MPI's control variable " + name + ", which " + source + " set, cannot be read");
  return variable.notation->to_text(bytes);
}

void ControlVariables::write(const std::string &name, const std::string &value, const std::string &source) {
  const Variable &variable = find(name, source);
  Bytes bytes;
  if (!variable.notation->to_bytes(value, bytes))
    refuse(source + " set " + name + "=" + value + "; give an integer in the range of this control variable");
  const auto capacity = static_cast<std::size_t>(variable.elements);
  if (variable.type == MPI_CHAR && capacity > 1) {
    if (bytes.size() > capacity)
      refuse(source + " set " + name + "=" + value + "; give a string of at most " + std::to_string(capacity - 1) + " characters");
    bytes.resize(capacity, '\0');
  }
  if (MPI_T_cvar_write(variable.handle, bytes.data()) != MPI_SUCCESS)
    refuse("this MPI's control variable " + name + ", which " + source +
           " set, cannot be written while a program runs; set it before the launch");
}

}  // namespace earlybird
