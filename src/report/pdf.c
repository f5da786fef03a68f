#include "report/pdf.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef TARN_RSVG

#include <cairo-pdf.h>
#include <dlfcn.h>
#include <librsvg/rsvg.h>

#define LIBRARY "librsvg-2.so.2"
#define POINTS 0.75  // per unit: pictures of width 700 are as wide as a page's text

// The functions used of librsvg and its dependencies.
typedef struct calls {
  __typeof__(rsvg_handle_new_from_data) *open;
  __typeof__(rsvg_handle_render_document) *render;
  __typeof__(g_object_unref) *unref;
  __typeof__(g_error_free) *error_free;
  __typeof__(cairo_pdf_surface_create_for_stream) *surface;
  __typeof__(cairo_pdf_surface_set_metadata) *metadata;
  __typeof__(cairo_surface_status) *status;
  __typeof__(cairo_surface_finish) *finish;
  __typeof__(cairo_surface_destroy) *surface_destroy;
  __typeof__(cairo_create) *create;
  __typeof__(cairo_scale) *scale;
  __typeof__(cairo_destroy) *destroy;
} calls;

static bool find(void *library, void *call, const char *name) {
  void *symbol = dlsym(library, name);
  memcpy(call, &symbol, sizeof symbol);
  return symbol != NULL;
}

// It stays open, so its caches serve the next picture.
static bool load(calls *c) {
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return library && find(library, &c->open, "rsvg_handle_new_from_data") &&
         find(library, &c->render, "rsvg_handle_render_document") && find(library, &c->unref, "g_object_unref") &&
         find(library, &c->error_free, "g_error_free") &&
         find(library, &c->surface, "cairo_pdf_surface_create_for_stream") &&
         find(library, &c->metadata, "cairo_pdf_surface_set_metadata") &&
         find(library, &c->status, "cairo_surface_status") && find(library, &c->finish, "cairo_surface_finish") &&
         find(library, &c->surface_destroy, "cairo_surface_destroy") && find(library, &c->create, "cairo_create") &&
         find(library, &c->scale, "cairo_scale") && find(library, &c->destroy, "cairo_destroy");
}

tarn_status tarn__pdf_there(void) {
  calls c;
  TARN_REQUIRE(load(&c), UNSUPPORTED, "figures cannot be written as PDF: " LIBRARY " cannot be opened");
  return TARN_STATUS_OK;
}

static cairo_status_t take(void *out, const unsigned char *data, unsigned int size) {
  tarn__buffer *buffer = out;
  tarn__buffer_put(buffer, (const char *)data, size);
  return buffer->status == TARN_STATUS_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static tarn_status draw(tarn__buffer *out, const calls *c, RsvgHandle *picture, double width, double height,
                        const char *date) {
  GError *error = NULL;
  cairo_surface_t *surface = c->surface(take, out, width * POINTS, height * POINTS);
  if (date) c->metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, date);
  cairo_t *context = c->create(surface);
  const RsvgRectangle viewport = {0, 0, width, height};
  c->scale(context, POINTS, POINTS);
  const bool drawn = c->render(picture, context, &viewport, &error);
  c->destroy(context);
  c->finish(surface);
  const bool whole = c->status(surface) == CAIRO_STATUS_SUCCESS;
  c->surface_destroy(surface);
  tarn_status status = out->status;
  if (status == TARN_STATUS_OK && !drawn)
    status = tarn__fail(TARN_STATUS_DATA, "librsvg: %s", error ? error->message : "a picture cannot be drawn");
  if (status == TARN_STATUS_OK && !whole) status = tarn__fail(TARN_STATUS_DATA, "cairo cannot write a picture as PDF");
  if (error) c->error_free(error);
  return status;
}

tarn_status tarn__pdf_make(tarn__buffer *out, const char *svg, size_t size, const char *date) {
  calls c;
  double width, height;
  const char *box = strstr(svg, "viewBox=\"0 0 ");
  GError *error = NULL;
  TARN_TRY(tarn__pdf_there());
  TARN_REQUIRE(load(&c) && box && sscanf(box, "viewBox=\"0 0 %lf %lf", &width, &height) == 2, DATA,
               "the picture has no size");
  RsvgHandle *picture = c.open((const guint8 *)svg, size, &error);
  if (!picture) {
    tarn_status status = tarn__fail(TARN_STATUS_DATA, "librsvg: %s", error ? error->message : "a picture is damaged");
    if (error) c.error_free(error);
    return status;
  }
  tarn_status status = draw(out, &c, picture, width, height, date);
  c.unref(picture);
  return status;
}

#else

tarn_status tarn__pdf_there(void) {
  return tarn__fail(TARN_STATUS_UNSUPPORTED,
                    "figures cannot be written as PDF: this program was built without librsvg (librsvg2-dev)");
}

tarn_status tarn__pdf_make(tarn__buffer *out, const char *svg, size_t size, const char *date) {
  (void)out, (void)svg, (void)size, (void)date;
  return tarn__pdf_there();
}

#endif
