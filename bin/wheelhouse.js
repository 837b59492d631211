#!/usr/bin/env node
// CommonJS, as `package.json` in this folder declares: Node's loader of ES modules takes a tenth of a
// start.
const { setFlagsFromString } = require('node:v8');
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');

/** Time of serving after which the code cache is stored: it then has what the first clients need. */
const keepAfterMs = 1000;

const args = process.argv.slice(2);
const { exports: program, keepCode } = loadBundle(requireBuild('wheelhouse.cjs'));
const keeps =
  keepCode !== undefined && args[0] === 'serve' && !process.env.NODE_DISABLE_COMPILE_CACHE;
if (!keeps) inlineMoreFunctions();
const onReady = () => setTimeout(keep, keepAfterMs).unref();
// Exits explicitly, because a library's timer must not keep a stopped server alive.
program.main(args, keeps ? { onReady } : {}).then((code) => process.exit(code));

function keep() {
  try {
    keepCode();
  } catch {
    // The next start compiles the source again.
  }
  inlineMoreFunctions();
}

/**
 * Lets V8 inline more calls, since a request runs through hundreds of small functions. Called after
 * the code cache is loaded or stored, because V8 rejects a cache that was made with other flags.
 */
function inlineMoreFunctions() {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000');
}
