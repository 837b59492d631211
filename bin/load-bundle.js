const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname } = require('node:path');
const vm = require('node:vm');

/**
 * Runs a bundle, which is one function in ASCII, with the machine code the build kept beside it
 * (`<path>.cache`): reading that is several times quicker than compiling the source. V8 itself
 * refuses the code of another version; then, and without the file, the source is compiled.
 */
exports.loadBundle = function loadBundle(path) {
  const source = readFileSync(path, 'latin1');
  return runBundle({ source, code: codeFor(path), path, require: createRequire(path) });
};

/**
 * Runs a bundle's text.
 * @param bundle.code machine code for it, or undefined
 * @param bundle.path names it in stack traces; its folder is what the bundle takes for its own
 * @param bundle.require loads what is not in the bundle
 */
function runBundle({ source, code, path, require }) {
  const script = new vm.Script(source, { filename: path, cachedData: code });
  const module = { exports: {} };
  const run = script.runInThisContext();
  run(module.exports, require, module, path, dirname(path));
  return { exports: module.exports, script };
}
exports.runBundle = runBundle;

function codeFor(path) {
  try {
    return readFileSync(`${path}.cache`);
  } catch {
    return undefined;
  }
}
