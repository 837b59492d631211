// The exports of the library's ES modules: the server's bundle, loaded once for all of them.
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');

/** Time after which the code cache is stored: it then has what the first planes of a test file need. */
const keepAfterMs = 1000;

const { exports: program, keepCode } = loadBundle(requireBuild('wheelhouse.cjs'));
if (keepCode !== undefined && !process.env.NODE_DISABLE_COMPILE_CACHE) {
  setTimeout(keep, keepAfterMs).unref();
}
module.exports = program;

function keep() {
  try {
    keepCode();
  } catch {
    // The next process compiles the source again.
  }
}
