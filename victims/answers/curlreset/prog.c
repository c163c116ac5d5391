// fetches pages with one handle that is reset before each
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

static size_t ignored(char *data, size_t size, size_t count, void *into) { (void)data; (void)into; return size * count; }

static int fetch_page(CURL *handle, const char *url) {
    curl_easy_reset(handle);
    curl_easy_setopt(handle, CURLOPT_COOKIEFILE, "");
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, ignored);
    curl_easy_setopt(handle, CURLOPT_URL, url);
    return curl_easy_perform(handle) == CURLE_OK;
}

int main(int argc, char **argv) {
    int n = atoi(argv[argc - 1]), good = 0;
    char url[4096];
    snprintf(url, sizeof url, "file://%s", argv[argc - 2]);
    CURL *handle = curl_easy_init();
    for (int k = 0; k < n; k++) good += fetch_page(handle, url);
    curl_easy_cleanup(handle);
    printf("%d\n", good);
}
