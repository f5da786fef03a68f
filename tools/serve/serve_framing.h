// Whether a request is framed as HTTP/1.1 demands (RFC 9112), and for which host it is. A request that a proxy before
// this server may read in another way must not be answered: what it takes for the end of a body, the other may take for
// the beginning of the next request. libmicrohttpd alone lets several such forms pass.
#ifndef TARN_TOOLS_SERVE_FRAMING_H
#define TARN_TOOLS_SERVE_FRAMING_H

#include <microhttpd.h>
#include <stdbool.h>

#include "serve/serve_request.h"

enum { SERVE_HOST_BYTES = 256 };

typedef struct serve_framing {
  bool bad_target;              // the request line's target as it came has what a target may not have
  char host[SERVE_HOST_BYTES];  // of the header Host, or of a target in absolute form; without port; "" without any
} serve_framing;

// For MHD_OPTION_URI_LOG_CALLBACK: looks at the target before it is decoded. What it returns becomes the state of the
// request, which serve_framing_saw_bad() knows.
void *serve_framing_see(void *user, const char *target, struct MHD_Connection *connection);
bool serve_framing_saw_bad(const void *state);

// Checks version, target and header, and sets framing->host. False: the request was refused, with 400, 501 (a coding of
// the body that nobody here knows) or 505, and its connection must end with the answer.
bool serve_framing_check(serve_framing *framing, struct MHD_Connection *connection, const char *target,
                         const char *version, serve_request *request);

// The path of a target: that behind the authority, where the target is in absolute form ("http://host/path").
const char *serve_framing_path(const char *target);

// Splits HOST[:PORT], of a header or a URI's authority; a host may be an address in brackets. Writes the host in small
// letters, without the dot that may end it. False: it is none.
bool serve_framing_host(char host[SERVE_HOST_BYTES], const char *text, size_t size);

#endif
