// What the library's ES modules re-export: the server's bundle, which is loaded once for all of them.
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');

/** After this much time, machine code is kept: what the first planes of a test file need. */
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
    // The next process compiles the source once more.
  }
}
