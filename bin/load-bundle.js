const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname } = require('node:path');
const vm = require('node:vm');
const { keptCode } = require('./kept-code.js');

/**
 * Runs a bundle, which is one function in ASCII, with V8's code cache that an earlier start or the
 * build (`<path>.cache`) has stored: reading it is several times faster than compiling the source.
 * Without a cache, or if V8 rejects it as that of another version, the source is compiled.
 * @returns the exports of the bundle, the script except in a sandbox, and, if the script was
 *   compiled, `keepCode`, which stores the code that V8 has compiled when it is called
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
 * Runs the source of a bundle.
 * @param bundle.code its code cache, or undefined
 * @param bundle.path its path in stack traces; the bundle takes the folder for its own
 * @param bundle.require loads modules that are not in the bundle
 */
exports.runBundle = (bundle) => run(compile(bundle), bundle);

function compile({ source, code, path }) {
  return new vm.Script(source, { filename: path, cachedData: code });
}

function run(script, bundle) {
  return { exports: exportsOf(script.runInThisContext(), bundle), script };
}

/**
 * Whether a test runner such as jest runs this in a context with its own globals. A script runs in
 * the main context, whose errors and arrays are not instances of the classes of the tests.
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
