// Checks that a request is framed as HTTP/1.1 requires (RFC 9112), and finds its host. A request that a proxy may parse
// differently must not be answered: the end of a body for one may be the start of the next request for the other
// (request smuggling). libmicrohttpd alone accepts several such forms.
#ifndef TARN_TOOLS_SERVE_FRAMING_H
#define TARN_TOOLS_SERVE_FRAMING_H

#include <microhttpd.h>
#include <stdbool.h>

#include "serve/serve_request.h"

enum { SERVE_HOST_BYTES = 256 };

typedef struct serve_framing {
  bool bad_target;              // the request target, as received, has invalid characters
  char host[SERVE_HOST_BYTES];  // of the header Host, or of a target in absolute form; without port; "" if there is
                                // none
} serve_framing;

// For MHD_OPTION_URI_LOG_CALLBACK: checks the target before it is decoded. The returned value becomes the state of the
// request, which serve_framing_saw_bad() interprets.
void *serve_framing_see(void *user, const char *target, struct MHD_Connection *connection);
bool serve_framing_saw_bad(const void *state);

// Checks version, target and header, and sets framing->host. False: the request was refused, with 400, 501 (an unknown
// coding of the body) or 505, and its connection must be closed after the answer.
bool serve_framing_check(serve_framing *framing, struct MHD_Connection *connection, const char *target,
                         const char *version, serve_request *request);

// The path of a target: for a target in absolute form ("http://host/path"), the part after the authority.
const char *serve_framing_path(const char *target);

// Splits HOST[:PORT], of a header or a URI's authority; a host may be an address in brackets. Writes the host in lower
// case, without a trailing dot. False: not a host.
bool serve_framing_host(char host[SERVE_HOST_BYTES], const char *text, size_t size);

#endif
