const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname } = require('node:path');
const vm = require('node:vm');
const { keptCode } = require('./kept-code.js');

/**
 * Runs a bundle, which is one function in ASCII, with the machine code that the build has made of
 * it (`<path>.cache`) or that an earlier start has kept: reading that is several times quicker than
 * compiling the source. V8 itself refuses the code of another version; then, and without the files,
 * the source is compiled.
 * @returns what the bundle exports, the script except in a sandbox, and, if the script was compiled,
 *   `keepCode`, which keeps the machine code that there is when it is called
 */
exports.loadBundle = function loadBundle(path) {
  const bytes = readFileSync(path);
  const bundle = { source: bytes.latin1Slice(), path, require: createRequire(path) };
  if (isInSandbox()) return { exports: evaluated(bundle) };
  const kept = keptCode({ path, bytes });
  const script = compile({ ...bundle, code: kept.read() ?? builtCode(path) });
  if (script.cachedDataRejected === false) return run(script, bundle);
  return { ...run(script, bundle), keepCode: () => kept.write(script.createCachedData()) };
};

/**
 * Runs a bundle's text.
 * @param bundle.code machine code for it, or undefined
 * @param bundle.path names it in stack traces; its folder is what the bundle takes for its own
 * @param bundle.require loads what is not in the bundle
 */
exports.runBundle = (bundle) => run(compile(bundle), bundle);

function compile({ source, code, path }) {
  return new vm.Script(source, { filename: path, cachedData: code });
}

function run(script, bundle) {
  return { exports: exportsOf(script.runInThisContext(), bundle), script };
}

/**
 * Whether a test runner such as jest runs this in a context with globals of its own. Scripts run in
 * the main context, whose errors and lists are no instances of the classes that the tests know.
 */
function isInSandbox() {
  return vm.runInThisContext('Object') !== Object;
}

function evaluated(bundle) {
  // biome-ignore lint/security/noGlobalEval: nothing else runs code in the context of its caller
  const wrapper = globalThis.eval(`${bundle.source}\n//# sourceURL=${bundle.path}`);
  return exportsOf(wrapper, bundle);
}

function exportsOf(wrapper, { path, require }) {
  const module = { exports: {} };
  wrapper(module.exports, require, module, path, dirname(path));
  return module.exports;
}

function builtCode(path) {
  try {
    return readFileSync(`${path}.cache`);
  } catch {
    return undefined;
  }
}
