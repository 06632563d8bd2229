// The header compiles as C++, and a program links.
#include <highwater.h>

#include <cstdio>

int main() {
    highwater_scan scan = highwater_scan();
    highwater_value value = highwater_value();
    if (scan.limit != 0 || value.kind != HIGHWATER_KIND_NULL) return 1;
    std::puts(highwater_version());
    return 0;
}
