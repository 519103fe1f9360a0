#!/bin/sh
# Have Chromium there for the tests of the web page: install it where that may be done.
# Debian has one without windows as well, which takes less CPU time to open a page.
for each in chromium-headless-shell chromium chromium-browser; do
  if command -v "$each" >/dev/null; then
    exit 0
  fi
done
if ! command -v apt-get >/dev/null; then
  echo 'no Chromium, and no apt-get to install it with: tests of the web page are skipped' >&2
  exit 0
fi
if [ "$(id -u)" = 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root='sudo -n'
else
  echo 'no Chromium (apt-get install chromium needs root): tests of the web page are skipped' >&2
  exit 0
fi
install() {
  for each in chromium-headless-shell chromium; do
    $as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install --yes --quiet --no-install-recommends "$each" && return
  done
  return 1
}
install || { $as_root apt-get update --quiet && install; } ||
  echo 'Chromium could not be installed: tests of the web page are skipped' >&2
