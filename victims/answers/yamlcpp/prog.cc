// keeps the newest reading in a document
#include <cstdlib>
#include <unistd.h>
#include <yaml-cpp/yaml.h>
__attribute__((noinline)) void store_reading(YAML::Node &state, int value) {
  state["reading"] = value;
}
int main(int, char **argv) {
  YAML::Node state;
  for (int n = 0; n < atoi(argv[1]); n++) {
    store_reading(state, n);
    if (n % 50 == 0) usleep(1000);
  }
}
