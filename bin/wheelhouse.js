#!/usr/bin/env node
// CommonJS, as `package.json` beside it says: node's loader of ES modules costs a tenth of a start.
const { setFlagsFromString } = require('node:v8');
const { loadBundle } = require('./load-bundle.js');
const { requireBuild } = require('./require-build.js');

/** After this much of serving, machine code is kept: what a start and its first clients need. */
const keepAfterMs = 1000;

const args = process.argv.slice(2);
const { exports: program, keepCode } = loadBundle(requireBuild('wheelhouse.cjs'));
const keeps =
  keepCode !== undefined && args[0] === 'serve' && !process.env.NODE_DISABLE_COMPILE_CACHE;
if (!keeps) joinMoreFunctions();
const onReady = () => setTimeout(keep, keepAfterMs).unref();
// Exit by name: a library's stray timer must not keep a stopped server alive.
program.main(args, keeps ? { onReady } : {}).then((code) => process.exit(code));

function keep() {
  try {
    keepCode();
  } catch {
    // The next start compiles the source once more.
  }
  joinMoreFunctions();
}

/**
 * A request runs through hundreds of small functions, more than V8 joins by itself. Said only now,
 * since kept code is refused under other flags than it was made with.
 */
function joinMoreFunctions() {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=4000');
}
