// Finds, reads and writes control variables through MPI_T.
#include "harness/control_variables.hpp"

#include <mpi.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/json.hpp"

namespace earlybird {

namespace {

struct Description {
  std::string name;
  MPI_Datatype type;
  int bind;
};

// False where the MPI tells nothing of variable `index`.
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
  for (const char *word : {"eager", "rndv", "rendezvous", "threshold"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

// A value as the MPI keeps it: bytes of one element, or of a text.
using Bytes = std::vector<char>;

// How elements of a type are written and read as text.
struct Notation {
  bool (*to_bytes)(const std::string &text, Bytes &bytes);
  std::string (*to_text)(const Bytes &bytes);
};

template <class Number>
bool number_to_bytes(const std::string &text, Bytes &bytes) {
  char *end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  const auto number = static_cast<Number>(value);
  if (text.empty() || *end != '\0' || errno != 0 || static_cast<long long>(number) != value) return false;
  if (value < 0 && !std::numeric_limits<Number>::is_signed) return false;
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
constexpr Notation notation_of{number_to_bytes<Number>, number_to_text<Number>};

// Of variables of one element, or of texts; null for what is neither.
const Notation *find_notation(MPI_Datatype type, int elements) {
  static constexpr Notation text{string_to_bytes, string_to_text};
  // One character is how Open MPI 5.0.11 shows a bool.
  if (type == MPI_CHAR) return elements == 1 ? &notation_of<signed char> : &text;
  if (elements != 1) return nullptr;
  if (type == MPI_INT) return &notation_of<int>;
  if (type == MPI_UNSIGNED) return &notation_of<unsigned>;
  if (type == MPI_LONG) return &notation_of<long>;
  if (type == MPI_UNSIGNED_LONG) return &notation_of<unsigned long>;
  if (type == MPI_LONG_LONG) return &notation_of<long long>;
  if (type == MPI_UNSIGNED_LONG_LONG) return &notation_of<unsigned long long>;
  if (type == MPI_COUNT) return &notation_of<MPI_Count>;
  if (type == MPI_C_BOOL) return &notation_of<bool>;
  return nullptr;
}

// Open MPI counts a text's characters without the end, and may hold longer ones than it counts.
constexpr std::size_t longest_text = 4096;

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
    Description known;
    if (!describe(k, known) || known.bind != MPI_T_BIND_NO_OBJECT || !mentions_threshold(known.name)) continue;
    const MPI_Datatype type = known.type;
    const bool whole = type == MPI_INT || type == MPI_UNSIGNED || type == MPI_UNSIGNED_LONG ||
                       type == MPI_UNSIGNED_LONG_LONG;
    if (!whole) continue;
    MPI_T_cvar_handle handle;
    int elements;
    if (MPI_T_cvar_handle_alloc(k, nullptr, &handle, &elements) != MPI_SUCCESS) continue;
    unsigned long long value = 0;
    if (elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) {
      const long long number = type == MPI_INT ? static_cast<int>(value) : static_cast<long long>(value);
      object.add(known.name, json_number(number));
    }
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return object.str();
}

ControlVariables::ControlVariables() {
  int provided;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
    refuse("this MPI does not start its tool interface (MPI_T), through which control variables are written");
}

ControlVariables::~ControlVariables() {
  for (auto &found : found_) MPI_T_cvar_handle_free(&found.second->handle);
  MPI_T_finalize();
}

ControlVariables::Variable &ControlVariables::find(const std::string &name, const std::string &whose) {
  std::unique_ptr<Variable> &variable = found_[name];
  if (variable) return *variable;
  variable = std::make_unique<Variable>();
  int index;
  Description known;
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS || !describe(index, known))
    refuse("this MPI has no control variable " + name + ", which " + whose +
           " give; give those of this MPI's version");
  if (known.bind != MPI_T_BIND_NO_OBJECT ||
      MPI_T_cvar_handle_alloc(index, nullptr, &variable->handle, &variable->elements) != MPI_SUCCESS)
    refuse("this MPI's control variable " + name + ", which " + whose + " give, is not one of the whole program");
  variable->type = known.type;
  variable->notation = find_notation(known.type, variable->elements);
  if (variable->notation == nullptr)
    refuse("this MPI's control variable " + name + ", which " + whose + " give, is neither a whole number nor a text");
  return *variable;
}

std::string ControlVariables::read(const std::string &name, const std::string &whose) {
  const Variable &variable = find(name, whose);
  Bytes bytes(longest_text + static_cast<std::size_t>(variable.elements), '\0');
  if (MPI_T_cvar_read(variable.handle, bytes.data()) != MPI_SUCCESS)
    refuse("this MPI's control variable " + name + ", which " + whose + " give, cannot be read");
  return variable.notation->to_text(bytes);
}

void ControlVariables::write(const std::string &name, const std::string &value, const std::string &whose) {
  const Variable &variable = find(name, whose);
  Bytes bytes;
  if (!variable.notation->to_bytes(value, bytes))
    refuse(whose + " give " + name + "=" + value + "; give a whole number that this control variable can hold");
  const auto room = static_cast<std::size_t>(variable.elements);
  if (variable.type == MPI_CHAR && room > 1) {
    if (bytes.size() > room)
      refuse(whose + " give " + name + "=" + value + "; give a text of at most " + std::to_string(room - 1) +
             " characters");
    bytes.resize(room, '\0');
  }
  if (MPI_T_cvar_write(variable.handle, bytes.data()) != MPI_SUCCESS)
    refuse("this MPI lets nobody write its control variable " + name + " while a program runs, which " + whose +
           " give; set it before the launch");
}

}  // namespace earlybird
